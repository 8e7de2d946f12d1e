"""Devices, files, checkpoints, threads and errors: what every other package may use."""
