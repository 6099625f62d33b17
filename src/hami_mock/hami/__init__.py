"""HAMi's protocol as data: the annotations it reads and writes, and its configuration. Pure."""
