"""The documentation that the service serves: the OpenAPI document, the API reference, and the guides."""
