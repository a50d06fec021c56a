"""Rails: the interfaces to companies outside (cards, virtual cards, messages), each with a sandbox implementation."""
