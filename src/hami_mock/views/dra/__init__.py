"""A DRA driver: the cards as ResourceSlices, and claims of them prepared for the kubelet."""
