"""A real Prometheus scrapes our exporters and answers what dashboards and alerts ask."""
