"""The HTTP parts of Cuota: the merchant API, the hosted pages, the documentation, and the server itself."""
