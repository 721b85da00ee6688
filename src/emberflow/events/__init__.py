"""What flows through a job: batches of records, watermarks, packets, and how values are encoded."""
