"""Events, deliveries and endpoints."""
