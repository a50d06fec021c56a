"""The merchant's dashboard: the roles of its people, and the words by which they find an order."""
