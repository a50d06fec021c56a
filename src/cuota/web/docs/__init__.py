"""The documentation as it is served: the OpenAPI document, the API reference, and the guides."""
