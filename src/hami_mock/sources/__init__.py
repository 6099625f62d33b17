"""Who decides which cards there are."""
