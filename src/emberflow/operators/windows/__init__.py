"""Windows over keyed streams.

Made by `operators/factory.py`; which operator runs a step is decided by `plan/window_specs.py`. Assigners, triggers and
evictors are those of `windowing/`.
"""
