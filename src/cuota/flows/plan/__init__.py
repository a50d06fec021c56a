"""What happens to a plan after the checkout."""
