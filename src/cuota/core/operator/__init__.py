"""The operator's dashboard: the people of the operator's team, and what each role may do."""
