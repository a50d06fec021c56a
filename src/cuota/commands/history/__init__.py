"""`cuota demo history`: several weeks of a shop's orders, made through the same paths as real orders."""
