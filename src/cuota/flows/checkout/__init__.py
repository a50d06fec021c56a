"""What a consumer does in the checkout."""
