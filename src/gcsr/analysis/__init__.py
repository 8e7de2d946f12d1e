"""A condensed graph compared with the real one: statistics, nearest nodes, figures."""
