"""Chat models of vendors, on their official clients, and llama.cpp in this process.

`ChatModel.openai("…")` and its siblings (`agents/models/model_shortcuts.py`) name these classes; nothing here is imported before
a worker creates one.
"""
