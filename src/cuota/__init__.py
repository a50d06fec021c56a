"""Cuota: a complete installment-payment provider."""
