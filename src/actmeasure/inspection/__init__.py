"""Advice for whoever inspects: a schedule, what it costs, what else could be done, and how sure that is."""
