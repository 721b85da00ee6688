#!/usr/bin/env python3
"""Adds amounts up: `total.py 12.50 80`."""

import sys

amounts = [float(item) for item in sys.argv[1:]]
receipts = [f"{item:g}" for item in amounts if item > 50]
print(f"total {sum(amounts):.2f}; receipts needed for: {', '.join(receipts) or 'none'}")
