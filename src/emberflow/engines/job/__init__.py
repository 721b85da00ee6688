"""What a job needs on every engine: its thread, restarts, checkpoint directory, ownership, progress, calls.

Used by `local` and `spark`; imports neither of them.
"""
