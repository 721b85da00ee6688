"""The shared core: every behaviour of a job, written once, hosted by the engines.

Operators do no I/O, own no thread and read no clock. An engine passes them batches, watermarks, due timers and
completed calls; they respond by emitting batches, changing state, registering timers and starting calls.
"""
