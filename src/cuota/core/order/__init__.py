"""What an order is, and every decision about its money."""
