"""Problems: functions that build models, of the paper and of the literature; by name, in `PROBLEMS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actmeasure.errors import ActMeasureError, ModelError, quoted
from actmeasure.model import Model
from actmeasure.problems.chain import chain
from actmeasure.problems.component_line import component_line
from actmeasure.problems.crack_life import crack_life
from actmeasure.problems.drone import drone
from actmeasure.problems.fatigue import fatigue_crack
from actmeasure.problems.frozen_lake import frozen_lake
from actmeasure.problems.inspection import inspection
from actmeasure.problems.inventory import inventory
from actmeasure.problems.k_out_of_n import k_out_of_n
from actmeasure.problems.maintenance import maintenance
from actmeasure.problems.paper_examples import measuring_value, most_likely_successor, tight_bound, two_state_belief
from actmeasure.problems.rock_sample import rock_sample
from actmeasure.problems.sepsis import sepsis
from actmeasure.problems.sewer import sewer
from actmeasure.problems.snake_maze import snake_maze
from actmeasure.problems.textbook import pile_selection, simple_fatigue, tiger
from actmeasure.settings import make_by_name

__all__ = [
    "PROBLEMS",
    "chain",
    "component_line",
    "crack_life",
    "drone",
    "fatigue_crack",
    "frozen_lake",
    "inspection",
    "inventory",
    "k_out_of_n",
    "maintenance",
    "make",
    "measuring_value",
    "most_likely_successor",
    "pile_selection",
    "rock_sample",
    "sepsis",
    "sewer",
    "simple_fatigue",
    "snake_maze",
    "tiger",
    "tight_bound",
    "two_state_belief",
]

#: Functions that build the models, by their names on the command line, from which the ids of environments are made.
PROBLEMS: dict[str, Callable[..., Model]] = {
    "measuring-value": measuring_value,
    "frozen-lake": frozen_lake,
    "most-likely-successor": most_likely_successor,
    "two-state-belief": two_state_belief,
    "tight-bound": tight_bound,
    "chain": chain,
    "maintenance": maintenance,
    "sepsis": sepsis,
    "snake-maze": snake_maze,
    "drone": drone,
    "sewer": sewer,
    "fatigue-crack": fatigue_crack,
    "inventory": inventory,
    "inspection": inspection,
    "tiger": tiger,
    "pile-selection": pile_selection,
    "simple-fatigue": simple_fatigue,
    "rock-sample": rock_sample,
    "component-line": component_line,
    "crack-life": crack_life,
    "k-out-of-n": k_out_of_n,
}


def make(name: str, **settings: Any) -> Model:
    """Build a problem by name; an unknown name or setting is a `ModelError` that says what was probably meant.

    The name `package.module:function` imports a function of your own that returns a `Model`.

    Examples
    --------
    >>> make("frozen-lake", size=8, variant="slippery")
    Model(64 states, 4 actions, measuring_cost=0.05, discount=0.95, 11 terminal)
    """
    try:
        made = make_by_name("problem", name, PROBLEMS, settings, ModelError)
    except ActMeasureError:
        raise
    except (MemoryError, ValueError, OverflowError) as error:  # such as "array is too big"
        raise ModelError(
            f"the problem {name!r} cannot be made with these settings ({error or 'the memory of this machine is full'}); choose "
            "other ones, such as a smaller size"
        ) from error
    if not isinstance(made, Model):
        raise ModelError(f"the problem {name!r} returned {quoted(made)}, expected a Model")
    return made
