"""The hosted checkout: the pages on which a consumer agrees to a plan and pays the first installment."""
