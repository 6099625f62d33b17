"""What any program could use: it knows nothing of cards, kubelets or clusters."""
