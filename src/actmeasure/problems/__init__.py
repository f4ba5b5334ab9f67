"""Functions that build models: the paper's problems and examples, and others of the field."""

from actmeasure.problems.catalogue import PROBLEMS, make
from actmeasure.problems.chain import chain
from actmeasure.problems.frozen_lake import frozen_lake
from actmeasure.problems.maintenance import maintenance
from actmeasure.problems.measuring_value import measuring_value
from actmeasure.problems.paper_examples import most_likely_successor, tight_bound, two_state_belief
from actmeasure.problems.sepsis import sepsis

__all__ = [
    "PROBLEMS",
    "chain",
    "frozen_lake",
    "maintenance",
    "make",
    "measuring_value",
    "most_likely_successor",
    "sepsis",
    "tight_bound",
    "two_state_belief",
]
