"""Windows over keyed streams.

Made by `operators/factory.py`; assigners and triggers are data of `event_time/` and are not implemented here.
"""
