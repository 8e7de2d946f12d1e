"""Equations of the GCSR paper (numbered) and of other methods, as pure functions.

Numbers are labels of the paper's LaTeX source. ``docs/architecture.md`` has the printed numbers.
"""
