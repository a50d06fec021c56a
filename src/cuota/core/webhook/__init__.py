"""When a webhook is sent, where it may go, and how it is signed."""
