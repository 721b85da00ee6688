"""Flink Agents' module paths and names: `names.py` says where each is found here, `missing.py` what to use instead.

`install.py` makes `import flink_agents…` and `import pyflink…` resolve to them; `emberflow run --as flink-agents` does the
same for one program.
"""
