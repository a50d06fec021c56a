"""OpenID Connect providers for the tests: a real program, and a stand-in that forges ID tokens."""
