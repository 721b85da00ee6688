"""What runs in Spark's Python workers: reading sources, keyed levels, writing sinks.

Entered through the shims of `wire/`; never imported by `driver/`.
"""
