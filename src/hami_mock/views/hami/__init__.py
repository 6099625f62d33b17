"""HAMi's node side: what its plugins do on a node with real cards, done for ours.

`registration` says what the node's annotations should be, `registrar` keeps them so; `allocator`
gives the kubelet what HAMi's scheduler assigned.
"""
