"""The people of the operator's team, their sessions, and the log of their actions."""
