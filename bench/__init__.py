"""Figures for docs/performance.md: `make bench`."""
