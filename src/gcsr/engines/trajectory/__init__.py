"""The trajectory engine: students match the weights of experts on the real graph."""
