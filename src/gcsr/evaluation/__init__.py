"""Train on the small graph, test on the real one; what that costs and saves."""
