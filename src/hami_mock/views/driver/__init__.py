"""The driver that isn't there: a state file that the library in native/ reads."""
