"""The HTTP server: protocol, deadlines, admission, the edge of every request."""
