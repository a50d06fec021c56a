"""What is stored about one person: found, exported, erased, and dropped after its term."""
