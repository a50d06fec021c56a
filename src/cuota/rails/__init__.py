"""Rails: the interfaces to external companies (cards, virtual cards, messages, banks), each with a sandbox implementation."""
