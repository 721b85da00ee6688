"""Declared types: rows, type information, conversion to declared types and the printed form of typed records."""
