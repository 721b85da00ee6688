"""Keyed state: descriptors, the handles user code works with, and what a key's state looks like when stored."""
