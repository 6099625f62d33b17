"""Who shows the state of the node, and to whom."""
