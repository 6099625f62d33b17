"""What can go wrong with cards and resources, on command or by a plan."""
