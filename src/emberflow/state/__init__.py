"""Keyed state: descriptors, the handles that user code works with, and the stored form of a key's state."""
