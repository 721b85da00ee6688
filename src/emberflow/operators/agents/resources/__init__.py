"""An agent's models, tools and stores on a worker: made once per process, handed to actions as views with durable
calls.

Called by the runner context; never writes a secret down.
"""
