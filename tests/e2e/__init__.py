"""End-to-end tests on a real one-machine Kubernetes cluster."""
