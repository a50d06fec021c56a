"""What reaches outside: cards, messages. Each a Protocol, and a sandbox that is real code."""
