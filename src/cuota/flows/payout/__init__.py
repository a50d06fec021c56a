"""How merchants are paid."""
