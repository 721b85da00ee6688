"""What runs on the Spark driver only: planning, starting, committing and stopping a query.

Called by `engines/spark/engine.py` and by Spark's planning processes; never imported by `worker/`.
"""
