"""Orders, and every decision about their money."""
