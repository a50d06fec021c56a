"""One verb for each thing that can happen. Flows read, let core decide, and save."""
