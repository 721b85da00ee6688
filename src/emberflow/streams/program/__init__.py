"""A stream program: the steps that an environment collects, where they were written, and the engine that runs them."""
