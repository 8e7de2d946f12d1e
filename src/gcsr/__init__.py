"""gcsr."""
