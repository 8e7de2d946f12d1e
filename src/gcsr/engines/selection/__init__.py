"""The selection engine: real nodes, or groups of them, instead of learned ones."""
