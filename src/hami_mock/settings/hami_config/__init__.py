"""HAMi's own configuration files."""
