"""Training of networks on a graph, and of experts."""
