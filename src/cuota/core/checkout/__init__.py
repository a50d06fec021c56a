"""What happens between the start of a checkout and its end."""
