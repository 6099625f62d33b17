"""Make a Kubernetes node look as if it carried accelerators it doesn't have."""

__version__ = "0.1.0"
