"""The bilevel engine: condensed graphs learned through the training of networks on them."""
