"""The HTTP server: connections and their timeouts, admission control, routing, metrics, and the edge around every request."""
