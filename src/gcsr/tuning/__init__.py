"""Search of settings on validation accuracy (Optuna, the extra ``tune``)."""
