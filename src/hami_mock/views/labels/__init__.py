"""Labels of the Node, as those who discover hardware would write them."""
