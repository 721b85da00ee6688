"""The durable calls of an action: numbered, recorded, and answered from the log when the action is repeated.

Called by the runner context; where records are kept is up to `durable/`.
"""
