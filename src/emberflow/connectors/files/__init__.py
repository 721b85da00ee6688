"""Files as a source and as an exactly-once sink, and the formats inside them.

Made by user programs, driven by engines through `connectors/source.py` and `connectors/sink.py`; local paths only.
"""
