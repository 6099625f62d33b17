"""What would fit: a fleet and a workload, without a cluster."""
