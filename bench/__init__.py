"""What is fast and what is the limit, side by side: `python -m bench`."""
