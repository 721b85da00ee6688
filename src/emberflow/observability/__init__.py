"""What a running agent reports: the event log (writer, reader, views), listeners and metrics."""
