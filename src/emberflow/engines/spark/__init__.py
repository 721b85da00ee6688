"""The Spark engine: one DataFrame plan and one streaming query (or one batch job) per program, public API only."""
