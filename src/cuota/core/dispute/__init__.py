"""Disputes: a consumer's or a card network's objection to an order, and a consumer's notice that the goods went back."""
