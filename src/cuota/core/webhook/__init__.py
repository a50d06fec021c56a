"""When a webhook is sent, which addresses it may be sent to, and how it is signed."""
