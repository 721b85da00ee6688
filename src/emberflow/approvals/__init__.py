"""Approvals: agents' questions to people as files of the checkpoint directory.

Engines ask and wait, the command line answers; imports neither.
"""
