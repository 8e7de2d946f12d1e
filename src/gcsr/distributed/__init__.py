"""Independent units of work on a Ray cluster (extra ``cluster``); knows nothing of graphs."""
