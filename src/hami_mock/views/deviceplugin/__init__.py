"""Device plugins: one gRPC server per resource, each registered with the kubelet."""
