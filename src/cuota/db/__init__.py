"""PostgreSQL, and only PostgreSQL: plain SQL, every statement naming its merchant."""
