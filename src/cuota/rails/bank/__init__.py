"""The way to pay merchants by their banks."""
