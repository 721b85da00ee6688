"""An agent's models, tools and stores on a worker: created once per process, passed to actions as views with durable
calls.

Called by the runner context; never stores a secret.
"""
