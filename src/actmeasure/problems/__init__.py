"""Problems: functions that build models, of the paper and of the literature."""

from actmeasure.problems.catalogue import PROBLEMS, make
from actmeasure.problems.chain import chain
from actmeasure.problems.drone import drone
from actmeasure.problems.fatigue import fatigue_crack
from actmeasure.problems.frozen_lake import frozen_lake
from actmeasure.problems.inspection import inspection
from actmeasure.problems.inventory import inventory
from actmeasure.problems.maintenance import maintenance
from actmeasure.problems.measuring_value import measuring_value
from actmeasure.problems.paper_examples import most_likely_successor, tight_bound, two_state_belief
from actmeasure.problems.sepsis import sepsis
from actmeasure.problems.sewer import sewer
from actmeasure.problems.snake_maze import snake_maze

__all__ = [
    "PROBLEMS",
    "chain",
    "drone",
    "fatigue_crack",
    "frozen_lake",
    "inspection",
    "inventory",
    "maintenance",
    "make",
    "measuring_value",
    "most_likely_successor",
    "sepsis",
    "sewer",
    "snake_maze",
    "tight_bound",
    "two_state_belief",
]
