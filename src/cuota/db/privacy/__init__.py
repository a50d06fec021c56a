"""Finds, exports and erases personal data, and deletes it after its age limit."""
