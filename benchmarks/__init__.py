"""Benchmarks with their targets: `python -m benchmarks` or `make bench`."""
