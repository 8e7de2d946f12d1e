"""The command line: ``gcsr --help``."""
