"""`cuota demo history`: weeks of a shop's life, made through the same paths as a real order."""
