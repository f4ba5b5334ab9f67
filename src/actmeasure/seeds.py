"""The former name of a part of `actmeasure.studies`, kept for existing code."""

from actmeasure.studies import SeedRuns, train_agent, train_seeds

__all__ = ["SeedRuns", "train_agent", "train_seeds"]
