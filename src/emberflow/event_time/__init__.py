"""Event time: clocks, watermark strategies, windows."""
