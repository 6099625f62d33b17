"""What the outside can read: health, readiness and metrics over HTTP."""
