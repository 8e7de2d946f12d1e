"""Planted faults, and whether the tests notice them; not part of the package."""
