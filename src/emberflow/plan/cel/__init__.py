"""Trigger expressions in CEL: parsed when a plan is checked, evaluated for every event by
`operators/agents/routes.py`.

The CEL package is imported only here, and only if an expression is used.
"""
