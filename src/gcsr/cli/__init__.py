"""The command line: ``gcsr --help``."""

from gcsr.cli.app import app, main

__all__ = ["app", "main"]
