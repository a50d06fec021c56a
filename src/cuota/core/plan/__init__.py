"""The installment plan: its amounts, dates, collection and costs."""
