"""What travels between the Spark driver and its workers, or is used on both sides: the job, the code, packet rows,
errors.

Imports neither `driver/` nor `worker/`.
"""
