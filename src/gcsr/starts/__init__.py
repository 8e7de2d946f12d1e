"""Initial condensed graphs: class budget, sampled rows, clusters, pseudo-labels."""
