"""The flows of disputes and return notices."""
