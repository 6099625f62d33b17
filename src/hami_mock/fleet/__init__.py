"""Thousands of nodes in one process: ours beside KWOK, which keeps them and their pods alive."""
