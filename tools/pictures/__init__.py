"""Draws what a node shows over two hours, from the answers of a real Prometheus."""
