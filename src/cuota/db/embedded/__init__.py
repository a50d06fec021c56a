"""The PostgreSQL that is installed with Cuota."""
