"""Facts, policy, decision, and the words for it."""
