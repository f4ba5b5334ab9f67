"""The same training with several seeds: in processes, with statistics over the seeds, tables and learning curves."""

from actmeasure.seeds.runs import Estimate, SeedRuns
from actmeasure.seeds.training import SeedProgress, train_agent, train_seeds

__all__ = ["Estimate", "SeedProgress", "SeedRuns", "train_agent", "train_seeds"]
