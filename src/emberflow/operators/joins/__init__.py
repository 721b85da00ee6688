"""Joins of two keyed streams.

Made by `operators/factory.py`. Window joins and co-groups are windows over a union and need no operator of their own.
"""
