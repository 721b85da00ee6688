"""The agent operator and its parts: runs, actions, parked runs.

Created by `operators/factory.py` and driven by engines like any keyed operator; does no I/O, owns no thread and imports
no engine.
"""
