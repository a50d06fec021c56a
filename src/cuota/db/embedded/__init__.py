"""The PostgreSQL that Cuota brings along."""
