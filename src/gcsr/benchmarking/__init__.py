"""Measures cells (method, graph, size, test model) once, in any number of processes, and keeps rows."""
