"""The pages for entering a business, its owners and its documents. Both dashboards have these pages."""
