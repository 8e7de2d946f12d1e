"""Graphs, condensed graphs, what may be seen of them, and their files."""
