"""Limits of models: calls wait until what all processes of a job share lets them start.

Called where a model is asked; keeps nothing on disk itself (`engines/job/limit_ledger.py` does).
"""
