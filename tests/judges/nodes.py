"""The nodes that every judge looks at: numbers of cards from 1 to 128, and models of all ages."""

from __future__ import annotations

NODES = (
    ("T4", 1),
    ("A100-SXM4-80GB", 8),
    ("H100-SXM5-80GB", 8),
    ("B200", 8),
    ("L40S", 16),
    ("A100-SXM4-40GB", 128),
)
