"""The program as graphs: the stream graph as written, the job graph cut at its shuffles, both as text and diagrams.

Created by `streams/`, read by engines; frozen data that imports no engine.
"""
