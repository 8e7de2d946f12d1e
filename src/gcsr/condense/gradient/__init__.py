"""The gradient engine: networks that should be pulled the same way by both graphs."""
