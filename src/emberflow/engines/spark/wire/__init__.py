"""What is sent between the Spark driver and its workers, or used on both sides: the job, the code, packet rows,
errors.

Imports neither `driver/` nor `worker/`.
"""
