"""Orders and the money that moves on them."""
