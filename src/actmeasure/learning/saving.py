"""Files of learning agents: NumPy archives with the task, the settings and everything learned.

Everything in a file is checked when it is read, so that a damaged file is an `AgentError` and never a wrong agent. An agent's own
arrays are checked by its `restore`, with the functions at the end of this module.

Version 2 is for tasks with one exact measurement, whose price is all there is to tell. Version 3 has the measurements, as `.npz`
files of models have them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.errors import ActMeasureError, AgentError, first_repeated, unknown_name
from actmeasure.file_access import explain, path_of, replacing
from actmeasure.files import npz
from actmeasure.files.archive import Shapes, read_arrays, write_arrays
from actmeasure.files.checks import Count, Number, Strict, check_keys, converted
from actmeasure.kernels.learned_model import INITIAL_CAPACITY, Counts, make_counts
from actmeasure.learning.agent import Task
from actmeasure.learning.learning_agent import NOTHING_KNOWN, LearningAgent, current_names, entries_of_pairs
from actmeasure.model import Measurement
from actmeasure.model.measurement import Sizes
from actmeasure.settings import LARGEST_RETURN

__all__ = ["TYPES", "are_most_frequent", "check_shapes", "counts_from", "load_agent", "save_agent", "stored"]

FORMAT = "actmeasure agent"
#: Version 2 has the state of foresight in named arrays; see `LearningAgent.upgrade` for files of version 1.
VERSION, VERSION_WITH_MEASUREMENTS = 2, 3
#: Arrays of the task, and of the starts that were seen, and their types.
TASK_TYPES = {
    "measuring_cost": "<f8",
    "start_states": "<i8",
    "start_probabilities": "<f8",
    "seen_starts": "<i8",
    "seen_times": "<i8",
}
#: Those in place of `measuring_cost` where the task tells measurements.
MEASUREMENT_TYPES = {name: npz.MEMBERS[name] for name in npz.OF_MEASUREMENTS}
SUFFIX = ".npz"


class _About(Strict):
    """The shape of the member `about`: which agent it is, its settings, and the task but for its arrays."""

    format: str
    version: Count
    agent: Any
    settings: dict[str, Any]
    episodes_done: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    n_states: Count
    n_actions: Count
    discount: Number
    reveal_start: bool
    start_is_told: bool
    largest_reward: Number | None
    planned_episodes: Annotated[int, msgspec.Meta(ge=1)] | None
    measurements: list[Any] | None = None  # None where one exact measurement can be made with every action
    passive: Any = None


def save_agent(agent: LearningAgent, path: str | os.PathLike[str]) -> None:
    """Write an agent into a file; an existing file is replaced in one step, or stays as it was."""
    target, task = path_of(path, SUFFIX, AgentError), agent.prepared()
    start = NOTHING_KNOWN if task.start is None else task.start
    about = msgspec.structs.asdict(_About(
        FORMAT, VERSION, agent.name, asdict(agent.settings), agent.episodes_done, task.n_states, task.n_actions, task.discount,
        task.reveal_start, task.start is not None, task.largest_reward, task.planned_episodes,
    ))  # fmt: skip
    del about["measurements"], about["passive"]
    instruments: dict[str, Any] = {"measuring_cost": np.asarray(task.measuring_cost)} if task.shows_states else {}
    if not task.shows_states:
        shown, passive = task.measurements or (), task.passive
        about |= {
            "version": VERSION_WITH_MEASUREMENTS,
            "measurements": [npz.about_measurement(one) for one in shown],
            "passive": None if passive is None else npz.about_measurement(passive),
        }
        instruments = npz.measurement_arrays(shown, passive, task.n_states, task.n_actions)
    arrays = (
        agent.learned()
        | instruments
        | {
            "start_states": start.states,
            "start_probabilities": start.probabilities,
            "seen_starts": np.array(list(agent.starts), dtype=np.int64),
            "seen_times": np.array(list(agent.starts.values()), dtype=np.int64),
        }
    )
    try:
        with replacing(target) as file:
            write_arrays(file, about, arrays, TASK_TYPES | MEASUREMENT_TYPES | agent.types | agent.hidden_types)
    except OSError as error:
        raise AgentError(str(explain(error, target, "write"))) from error


def load_agent(path: str | os.PathLike[str], kinds: Mapping[str, type[LearningAgent]]) -> LearningAgent:
    """Return the agent in a file, of one of the given classes by name."""
    source = path_of(path, SUFFIX, AgentError)
    types = TASK_TYPES | MEASUREMENT_TYPES
    for kind in kinds.values():
        types |= kind.types | kind.hidden_types | (kind.version_1_types or {})
    try:
        about, arrays = read_arrays(
            source.read_bytes(),
            FORMAT,
            types,
            _check_shapes,
            _check_about,
            optional=types,
            latest=VERSION_WITH_MEASUREMENTS,
        )
        return _agent(converted(about, _About), arrays, kinds)
    except OSError as error:
        raise AgentError(str(explain(error, source, "read"))) from error
    except ActMeasureError as error:
        raise AgentError(f"{source}: {error}") from error


def _agent(
    about: _About, arrays: Mapping[str, npt.NDArray[Any]], kinds: Mapping[str, type[LearningAgent]]
) -> LearningAgent:
    """Return the agent that the contents of a file describe."""
    if not isinstance(about.agent, str) or about.agent not in kinds:
        raise AgentError(unknown_name("agent", about.agent, kinds))
    kind = kinds[about.agent]
    settings = current_names(kind, about.settings)
    check_keys(settings, "'settings'", [field.name for field in fields(kind().settings)])
    types = kind.types if about.version > 1 or kind.version_1_types is None else kind.version_1_types
    if about.measurements is None:
        check_keys(dict(arrays), "the archive", [*TASK_TYPES, *types])
    else:
        told = [name for name in TASK_TYPES if name != "measuring_cost"]
        check_keys(dict(arrays), "the archive", [*told, *MEASUREMENT_TYPES, *types, *kind.hidden_types])
    if types is not kind.types:
        arrays = kind.upgrade(arrays)
    agent, task = kind(**settings), _task(about, arrays)
    if about.measurements is not None and (kind.needs_exact_looks or task.shows_states):
        raise AgentError("its measurements are not those of such an agent; the file is damaged")
    agent.prepare(task)
    agent.restore(arrays)
    agent.episodes_done = about.episodes_done
    agent.starts = _seen_starts(arrays, about.n_states)
    return agent


def _check_shapes(shapes: Shapes) -> int:
    """Return the largest number of values in `about` that tell of measurements."""
    given = [name for name in MEASUREMENT_TYPES if name in shapes]
    if given:
        check_keys(shapes, "the archive", [*MEASUREMENT_TYPES, *shapes])
    return npz.most_values(shapes) if given else 0


def _check_about(about: dict[str, Any], shapes: Shapes) -> None:
    """Check `about`, and refuse arrays that are too large for that many states and actions, before they are read."""
    checked = converted(about, _About)
    n_states, n_actions = checked.n_states, checked.n_actions
    tells = checked.measurements is not None
    if tells != ("allowed" in shapes) or tells != (checked.version == VERSION_WITH_MEASUREMENTS):
        raise AgentError("'about' and the arrays do not tell of the same measurements; the file is damaged")
    if checked.measurements is not None:
        npz.check_measurement_shapes(checked.measurements, checked.passive, shapes, n_states, n_actions)
    # Tables have an entry, or a few, for every pair of state and action, or for every transition that was seen.
    most = 8 * (n_states + 1) * (n_states + 1) * n_actions
    for name, shape in shapes.items():
        if name not in MEASUREMENT_TYPES and math.prod(shape) > max(most, 1 << 16):
            raise AgentError(
                f"{name!r} has shape {shape}, which is too large for {n_states} states and {n_actions} actions; the file is "
                "damaged"
            )


def _task(about: _About, arrays: Mapping[str, npt.NDArray[Any]]) -> Task:
    """Return the task that the agent was prepared for."""
    n_states, n_actions = about.n_states, about.n_actions
    pairs, cost = arrays["first"].size, arrays.get("measuring_cost", np.zeros(()))
    fits = pairs in (n_states * n_actions, (n_states + 1) * n_actions)
    if not fits or cost.shape not in ((), (n_states, n_actions)):
        raise AgentError(
            f"its arrays are for {pairs} pairs of state and action, not for {n_states} x {n_actions}; the file is damaged"
        )
    if not 0 < about.discount <= 1 or not np.isfinite(cost).all() or (cost < 0).any():
        raise AgentError("its discount or a measuring cost is out of range; the file is damaged")
    start = _start(arrays, n_states) if about.start_is_told else None
    measurements, passive = _instruments(about, arrays)
    if measurements is None:
        prices: Any = float(cost) if cost.ndim == 0 else cost
        outcomes: tuple[int, ...] = ()
    else:
        prices = measurements[0].cost if len(measurements) == 1 else tuple(one.cost for one in measurements)
        outcomes = tuple(_n_outcomes(one, n_states) for one in (passive, *measurements))
    exact = measurements is None or (passive is None and len(measurements) == 1 and measurements[0].is_exact)
    return Task(
        n_states, n_actions, prices, about.discount, start, about.reveal_start, about.largest_reward,
        about.planned_episodes, outcomes, exact, measurements, passive,
    )  # fmt: skip


def _n_outcomes(shown: Measurement | None, n_states: int) -> int:
    return 0 if shown is None else n_states if shown.law is None else shown.law.n_outcomes


def _instruments(
    about: _About, arrays: Mapping[str, npt.NDArray[Any]]
) -> tuple[tuple[Measurement, ...] | None, Measurement | None]:
    """Return the measurements of the task, checked as those of a model; None where only a price is told."""
    if about.measurements is None:
        return None, None
    n_states, n_actions = about.n_states, about.n_actions
    measurements, passive = npz.read_measurements(about.measurements, about.passive, arrays, n_states, n_actions)
    all_of_them = [*measurements, *([] if passive is None else [passive])]
    # Laws have no rows for states in which episodes end.
    ended = np.zeros(n_states, dtype=bool)
    for one in all_of_them:
        if one.law is not None:
            ended = np.diff(one.law.offsets).reshape(-1, n_states).sum(axis=0) == 0
    shown = [one.bound(Sizes(n_states, n_actions, ended), warn=False) for one in all_of_them]
    twice = first_repeated([one.name for one in shown])
    if twice is not None:
        raise AgentError(f"two measurements are named {twice!r}; the file is damaged")
    return tuple(shown[: len(measurements)]), None if passive is None else shown[-1]


def _start(arrays: Mapping[str, npt.NDArray[Any]], n_states: int) -> Belief:
    """Return the start that the task tells."""
    states, probabilities = arrays["start_states"], arrays["start_probabilities"]
    sound = (
        states.ndim == 1
        and states.size > 0
        and probabilities.shape == states.shape
        and states.min() >= 0
        and states.max() < n_states
        and bool((np.diff(states) > 0).all())
        and bool((probabilities > 0).all())
        and abs(probabilities.sum() - 1) < 1e-9
    )
    if not sound:
        raise AgentError("its distribution of the start is not one; the file is damaged")
    return Belief(states, probabilities)


def _seen_starts(arrays: Mapping[str, npt.NDArray[Any]], n_states: int) -> dict[int, int]:
    """Return how often episodes began in each state."""
    states, times = arrays["seen_starts"], arrays["seen_times"]
    if states.shape != times.shape or states.ndim != 1 or (states < 0).any() or (states >= n_states).any():
        raise AgentError("the starts it has seen are not states; the file is damaged")
    if (times < 1).any():
        raise AgentError("the starts it has seen have counts below 1; the file is damaged")
    return dict(zip(states.tolist(), times.tolist(), strict=True))


#: The arrays of `Counts` in files, and their types.
TYPES = {
    "first": "<i8",
    "measured": "<i8",
    "rewards": "<f8",
    "successors": "<i8",
    "times": "<i8",
    "following": "<i8",
}
#: Those with an entry for each transition.
LISTS = ("successors", "times", "following")
#: Largest count of a transition; sums of as many as fit into memory are still exact.
MOST_TIMES = 1 << 40
#: Largest absolute value in the tables of an agent.
LARGEST_SUM = MOST_TIMES * LARGEST_RETURN


def stored(counts: Counts) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of counts, without capacity that is not used."""
    used = int(counts.used[0])
    return {name: getattr(counts, name)[: used if name in LISTS else None] for name in TYPES}


def counts_from(arrays: Mapping[str, npt.NDArray[Any]], n_states: int, n_actions: int, end: int) -> Counts:
    """Return the counts that `stored` wrote; raise an `AgentError` if the arrays cannot be counts.

    `end` is the number of the last state that a transition may lead to.
    """
    pairs, used = n_states * n_actions, arrays["successors"].size
    check_shapes(arrays, dict.fromkeys(TYPES, (pairs,)) | dict.fromkeys(LISTS, (used,)))
    _check_lists(arrays, end)
    capacity = INITIAL_CAPACITY
    while capacity <= used:
        capacity *= 2
    counts = make_counts(n_states, n_actions, capacity)
    for name, values in stored(counts._replace(used=np.array([used]))).items():
        values[:] = arrays[name]
    counts.used[0] = used
    return counts


def check_shapes(
    arrays: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int, ...]], largest: float = LARGEST_SUM
) -> None:
    """Raise an `AgentError` for the first array of another shape, or with NaN or an absolute value above `largest`."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise AgentError(f"{name!r} has shape {arrays[name].shape}, expected {shape}; the file is damaged")
        if not (np.abs(arrays[name]) <= largest).all():  # nor may it be NaN
            raise AgentError(f"{name!r} holds numbers above {largest:g} in size or NaN; the file is damaged")


def _check_lists(arrays: Mapping[str, npt.NDArray[Any]], end: int) -> None:
    """Raise an `AgentError` unless every entry but 0 belongs to one pair, and their times add up to what was measured."""
    first, following, used = arrays["first"], arrays["following"], arrays["successors"].size
    later = np.arange(used)
    sound = (
        used > 0
        and first.min() >= 0
        and first.max() < used
        and following.min() >= 0
        and not (following[1:] >= later[1:]).any()  # an entry is followed by an older one, so that no list is circular
        and following[0] == 0
        and np.bincount(np.concatenate([first, following]), minlength=used)[1:].tolist() == [1] * (used - 1)
        and arrays["successors"].min() >= 0
        and arrays["successors"].max() <= end
        and arrays["times"][0] == 0
        and not (arrays["times"][1:] < 1).any()
        and arrays["times"].max() <= MOST_TIMES
        and _measured(arrays).tolist() == arrays["measured"].tolist()
    )
    if not sound:
        raise AgentError("its counts of transitions contradict each other; the file is damaged")


def _measured(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Return how often each pair was measured, as the sum over its entries."""
    total = np.zeros_like(arrays["first"])
    np.add.at(total, _owners(arrays)[1:], arrays["times"][1:])
    return total


def _owners(arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Return the pair that each entry belongs to; -1 for entry 0, which belongs to none."""
    owners = np.full(arrays["successors"].size, -1)
    for pairs, entries in entries_of_pairs(arrays["first"], arrays["following"]):
        owners[entries] = pairs
    return owners


def are_most_frequent(arrays: Mapping[str, npt.NDArray[Any]], chosen: npt.NDArray[np.int64]) -> bool:
    """Return whether the chosen entry of each pair is one of those counted most often, and 0 if the pair has none."""
    owners, times = _owners(arrays), arrays["times"]
    most = np.zeros_like(chosen)
    np.maximum.at(most, owners[1:], times[1:])
    if (chosen < 0).any() or (chosen >= owners.size).any():
        return False
    seen = most > 0
    own = owners[chosen] == np.where(seen, np.arange(chosen.size), -1)
    return bool((own & (~seen | (times[chosen] == most))).all())
