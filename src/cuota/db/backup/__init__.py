"""The file of a backup and the PostgreSQL programs that write it."""
