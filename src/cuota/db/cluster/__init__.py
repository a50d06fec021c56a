"""A Citus cluster: its nodes, the rows that distributing leaves behind, and whether the cluster can serve."""
