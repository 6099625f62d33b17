"""A small kubelet: the other side of the device-plugin API, for the demo and for tests.

It does with devices what the real one does, and nothing else that the real one does.
"""
