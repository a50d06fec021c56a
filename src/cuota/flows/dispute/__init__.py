"""What can happen to a dispute, and to a return notice."""
