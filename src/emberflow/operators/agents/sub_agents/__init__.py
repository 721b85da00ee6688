"""Agents that other agents call inside their actions."""
