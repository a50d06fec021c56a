"""When a webhook is sent, to which addresses it may be sent, and how it is signed."""
