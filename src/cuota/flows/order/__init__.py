"""The actions of a merchant on an order."""
