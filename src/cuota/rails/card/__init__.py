"""Card rails: they charge cards and send money back to them."""
