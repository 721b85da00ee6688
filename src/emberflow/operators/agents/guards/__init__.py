"""What protects an agent's actions while they run: attempts, budgets, delayed events, questions to people, failures.

Called by the agent operator; what is stored or asked goes through contracts that engines implement.
"""
