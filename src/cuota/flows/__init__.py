"""One module for each thing that can happen, named by a verb. A flow reads, lets core decide, and saves."""
