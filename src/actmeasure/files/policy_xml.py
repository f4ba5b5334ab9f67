"""Write value vectors as a policy in the XML format of SARSOP, which its simulator, POMDPs.jl and pomdp-py read.

A policy belongs to the `.pomdp` file of the same model, as `Model.save` writes it: entries of a vector are the states of that
file, and actions are its actions, the allowed pairs of an action and a measurement. A vector is a lower bound on the optimal
value, linear in the belief; the action of the best vector is taken. In states for which a vector has no value, it has the value
of the worst that can happen at all, so that it is a bound for every belief.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

from actmeasure.decision import Decision
from actmeasure.errors import ModelError
from actmeasure.file_access import check_writable, explain, replacing
from actmeasure.files.pomdp_writer import state_and_pair_numbers
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = ["ValueVector", "save_policy_xml"]

#: Decision, states and the value in each of them.
ValueVector = tuple[Decision, npt.NDArray[np.int64], FloatArray]

#: Largest number of values in a file.
MOST_VALUES = 100_000_000


def save_policy_xml(
    model: Model, vectors: Iterable[ValueVector], lower: float, worst: float, path: str | os.PathLike[str],
    model_file: str | os.PathLike[str] | None = None,
) -> None:  # fmt: skip
    """Write value vectors to a file.

    Parameters
    ----------
    model : Model
    vectors : iterable of (Decision, int64 array, float64 array)
        The first decision of a plan, states, and lower bounds on the value of the plan in them.
    lower : float
        Lower bound on the optimum from the start of the model.
    worst : float
        Lower bound on what any behaviour earns, from any state.
    path : str or path
    model_file : str or path, optional
        The `.pomdp` file of the model; its name is written. By default the policy's own name with the ending `.pomdp`.
    """
    path = Path(path)
    name = Path(path.with_suffix(".pomdp") if model_file is None else model_file).name
    check_writable(path, "the policy", ModelError)
    states, pairs = state_and_pair_numbers(model)
    number = {pair: position for position, pair in enumerate(pairs)}
    # States of the file, by state of the model; -1 is `begin`, from which the first state is shown.
    running = (states >= 0) & ~model.terminal[np.maximum(states, 0)]
    listed = list(vectors)
    begins = states[0] < 0
    if (len(listed) + begins) * len(states) > MOST_VALUES:
        raise ModelError(
            f"the policy has {len(listed):,} vectors of {len(states):,} states, more than {MOST_VALUES:,} values; solve with a "
            "larger tolerance, or write the policy graph with solution.policy_graph().save"
        )
    values = np.full(model.n_states, worst)
    dense = np.zeros(len(states))
    try:
        with replacing(path) as file:
            head = (
                '<?xml version="1.0" encoding="ISO-8859-1"?>\n'
                f'<Policy version="0.1" type="value" model={quoteattr(name)}>\n'
                f'<AlphaVector vectorLength="{len(states)}" numObsValue="1" numVectors="{len(listed) + begins}">\n'
            )
            file.write(head.encode("iso-8859-1", "xmlcharrefreplace"))
            if begins:
                # Any action leads from `begin` to the start, which is shown.
                dense[running] = worst
                dense[0] = model.discount * lower
                file.write(_line(0, dense))
            for decision, members, worth in listed:
                values[members] = worth
                dense[running] = values[states[running]]
                dense[states < 0] = worst
                file.write(_line(number[decision.action, decision.measurement], dense))
                values[members] = worst
            file.write(b"</AlphaVector>\n</Policy>\n")
    except OSError as error:
        raise explain(error, path, "write") from error


def _line(action: int, values: FloatArray) -> bytes:
    numbers = " ".join(map(repr, values.tolist()))
    return f'<Vector action="{action}" obsValue="0">{numbers} </Vector>\n'.encode("ascii")
