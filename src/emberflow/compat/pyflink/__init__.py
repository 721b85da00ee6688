"""PyFlink's module paths and names: `names.py` says where each is found here, `missing.py` what to use instead.

`install.py` makes `import pyflink…` resolve to them; `emberflow run --as pyflink` does the same for one program.
"""
