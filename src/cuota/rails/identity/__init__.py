"""A company's OpenID Connect provider, at which the operator's people may sign in: discovery, keys, and ID tokens."""
