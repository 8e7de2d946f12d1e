"""The optimization loops that methods are built from."""
