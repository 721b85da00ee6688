"""Inputs that agents could not process, as files of the checkpoint directory, and their redrive.

Agents write and read them as a sink and a source, the command line lists and redrives them; imports no engine.
"""
