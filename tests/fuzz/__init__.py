"""Fuzzing of every parser of outside text and of every socket: `make fuzz`."""
