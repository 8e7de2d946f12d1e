"""Work on graphs larger than memory, by blocks of rows: the same bytes as in memory."""
