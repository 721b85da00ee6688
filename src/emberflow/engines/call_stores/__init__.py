"""Where the log of durable calls is kept: files on a disk, objects in a bucket, tables of a database."""
