"""Settlement lines, batches and payouts of merchants."""
