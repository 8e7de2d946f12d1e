"""Graph neural networks for condensing and testing."""
