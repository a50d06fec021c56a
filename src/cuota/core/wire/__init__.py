"""JSON and signatures, as they travel."""
