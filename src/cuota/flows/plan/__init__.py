"""The flows of a plan after the checkout."""
