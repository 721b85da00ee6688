"""The `emberflow` command: one file per subcommand; commands only parse arguments and print."""
