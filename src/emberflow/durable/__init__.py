"""The durable call log: what was called and answered, which process runs which action, what a micro-batch decided.

Used by engines; operators see it only through the contract in `operators/agents/calls/`.
"""
