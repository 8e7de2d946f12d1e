"""The trajectory engine: students that should end where experts on the real graph ended."""
