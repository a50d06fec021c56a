"""The installment plan: amounts, days, collection, what it costs."""
