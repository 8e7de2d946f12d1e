"""Measurements of speed, scale and accuracy; not part of the package."""
