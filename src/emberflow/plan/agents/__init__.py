"""Agents as data: actions, guards, settings and resources of a plan, and the checks on them.

Created by the agent API, run by `operators/agents/`; creates no resource and runs no action.
"""
