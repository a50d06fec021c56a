"""HTTP: the merchant API, the hosted pages."""
