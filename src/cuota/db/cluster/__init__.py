"""Checks whether the service can run on a Citus cluster, and makes reads that skip a node that is down."""
