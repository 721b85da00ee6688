"""Creates a Spark session: Java, Spark's settings, and how Python processes start.

Called by `engines/spark/engine.py` and `emberflow doctor`; knows nothing about jobs.
"""
