"""The checkout, from its start to its end."""
