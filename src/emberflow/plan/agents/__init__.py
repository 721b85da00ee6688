"""Agents as data: what a plan holds about actions, guards, settings and resources, and what is wrong with them.

Made by the agent API, run by `operators/agents/`; makes no resource and runs no action.
"""
