"""The people of the operator's team, their sessions, and the log of what they did."""
