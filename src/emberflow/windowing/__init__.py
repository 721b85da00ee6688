"""What a window is made of: kinds of windows, assigners, triggers and evictors.

Public, through `emberflow.streams`; run by `operators/windows`. Nothing here keeps state or reads a clock: both come
through the context that each method is given.
"""
