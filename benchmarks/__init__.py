"""Measurements beside their bars: `python -m benchmarks` or `make bench`."""
