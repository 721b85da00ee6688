"""The compile layer: program -> stream graph -> job graph. Frozen data; imports no engine."""
