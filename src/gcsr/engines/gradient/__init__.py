"""The gradient engine: matches gradients of networks on both graphs."""
