"""The commands of `cuota`: one module for each group, with the group's options."""
