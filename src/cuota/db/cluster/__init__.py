"""Whether a Citus cluster can serve, and reads that skip a node that is down."""
