"""Where the durable call log and the decisions of micro-batches are kept: files on a disk, objects in a bucket,
tables of a database.

Opened by `durable/location.py`; a store keeps bytes and never interprets a record.
"""
