"""The bilevel engine: condensed graphs learned through the training of the networks they are for."""
