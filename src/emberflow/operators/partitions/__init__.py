"""Steps without keys that have several tasks: partitioners, their numbered tasks, broadcast and operator state."""
