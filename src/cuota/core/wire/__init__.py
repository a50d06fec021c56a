"""JSON, forms and signatures in the formats of requests and responses."""
