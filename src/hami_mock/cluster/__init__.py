"""The API server's side: the only place that knows how it is reached."""
