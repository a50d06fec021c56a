"""What a merchant does with an order."""
