"""The fleet for people to look at: a live page with a tile for every node."""
