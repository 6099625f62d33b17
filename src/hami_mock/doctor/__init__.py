"""`hami-mock doctor`: why HAMi or the kubelet would refuse a node or a pod."""
