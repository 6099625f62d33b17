"""The API server's side: the only place that knows kubernetes_asyncio."""
