"""The `shapelab` command: one file a command, and what they share in options.py, sources.py, measuring.py and output.py."""
