"""The `emberflow` command: one file per subcommand; it parses and prints, the work is done elsewhere."""
