"""The one truth: cards, devices, resources, faults, and what holds now."""
