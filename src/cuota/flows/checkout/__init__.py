"""The actions of a consumer in the checkout."""
