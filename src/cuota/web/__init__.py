"""Everything that Cuota serves over HTTP: the merchant API, the hosted pages, the documentation, and the server itself."""
