"""The durable call log: calls and their answers, which process runs which action, and the decisions of micro-batches.

Used by engines; operators see it only through the contract in `operators/agents/calls/`.
"""
