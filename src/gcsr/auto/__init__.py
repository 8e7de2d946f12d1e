"""The automatic mode."""
