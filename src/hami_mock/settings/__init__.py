"""What the user said: options, layers, files."""
