"""The gradient engine: networks whose gradients on both graphs should agree."""
