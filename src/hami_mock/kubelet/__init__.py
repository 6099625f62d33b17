"""The kubelet's API as data: its messages as bytes, its limits, and who holds which device."""
