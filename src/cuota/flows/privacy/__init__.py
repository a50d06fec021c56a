"""A person's own data: exported and erased."""
