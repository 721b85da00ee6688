"""Durable calls as an action makes them: numbered, recorded, answered from the log when the action is repeated.

Called by the runner context; where records are kept is the business of `durable/`.
"""
