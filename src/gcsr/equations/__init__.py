"""Equations of the GCSR paper (numbered) and of other methods, as pure functions."""
