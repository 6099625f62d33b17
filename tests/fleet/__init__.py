"""The fleet on a real control plane and KWOK: no kubelet, no containers, no root."""
