"""Guards of an agent's running actions: attempts, budgets, delayed events, questions to people, failures.

Called by the agent operator; storage and questions go through contracts that engines implement.
"""
