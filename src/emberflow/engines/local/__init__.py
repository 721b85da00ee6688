"""The local engine: one process, one mailbox thread per job, no JVM."""
