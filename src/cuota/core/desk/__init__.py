"""The merchant's dashboard: the roles of its people, and the search terms that find an order."""
