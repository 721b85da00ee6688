"""Stores of the durable call log and of the decisions of micro-batches: files on a disk, objects in a bucket,
tables of a database.

Opened by `durable/location.py`; a store keeps bytes and never interprets a record.
"""
