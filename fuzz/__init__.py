"""Coverage-guided fuzzing of every file reader and of the command line; see docs/fuzzing.md."""
