"""The node for people to look at: a live page, and what `hami-mock top` shows."""
