"""Functions that build models: the paper's problems and examples."""

from actmeasure.problems.catalogue import PROBLEMS, make
from actmeasure.problems.frozen_lake import frozen_lake
from actmeasure.problems.measuring_value import measuring_value
from actmeasure.problems.paper_examples import most_likely_successor, tight_bound, two_state_belief

__all__ = [
    "PROBLEMS",
    "frozen_lake",
    "make",
    "measuring_value",
    "most_likely_successor",
    "tight_bound",
    "two_state_belief",
]
