"""The pages on which a business, its owners and its documents are entered: the same in both dashboards."""
