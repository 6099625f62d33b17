"""The agent beside a real vendor plugin: it registers only what that one doesn't."""
