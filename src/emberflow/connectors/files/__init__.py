"""Files as a source and as an exactly-once sink, and their formats.

Created by user programs, driven by engines through `connectors/source.py` and `connectors/sink.py`; local paths only.
"""
