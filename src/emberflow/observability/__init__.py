"""What a running agent leaves for its reader: the event log (writer, reader, views), listeners and metrics."""
