"""What `cuota COMMAND` does: one module a group, each with its own options."""
