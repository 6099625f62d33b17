"""The metrics of dcgm-exporter, of HAMi's monitor and of other makers' exporters."""
