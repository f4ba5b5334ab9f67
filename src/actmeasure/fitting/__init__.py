"""Models from inspection records."""
