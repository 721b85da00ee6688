"""Limits of models: calls wait until the limits shared by all processes of a job let them start.

Called where a model is called; keeps nothing on disk itself (`engines/job/limit_ledger.py` does).
"""
