"""What erasing a consumer takes out of an order, and what stays."""
