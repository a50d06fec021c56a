"""Risk: facts, policy, decision, and the texts that explain a decision."""
