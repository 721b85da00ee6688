"""The function classes that users derive from, and what turns functions, selectors and fields into calls.

Used by the kinds of streams in `streams/`, which pass the calls to the plan.
"""
