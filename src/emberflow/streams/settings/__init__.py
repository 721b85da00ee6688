"""What can be set of an environment: Flink's configuration, execution and checkpoint settings, as plain data."""
