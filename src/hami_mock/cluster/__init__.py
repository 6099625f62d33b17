"""The API server's side: the only place that knows kubernetes_asyncio.

It is imported where it is used, because it takes longer to import than all the rest together.
"""
