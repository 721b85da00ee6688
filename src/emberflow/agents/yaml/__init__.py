"""Agents described in YAML: reading, checking and building them. PyYAML is imported when a file is read."""
