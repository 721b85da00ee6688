"""Event time: timestamps, watermark generators, and how the watermarks of channels and sources are merged, held and aligned."""
