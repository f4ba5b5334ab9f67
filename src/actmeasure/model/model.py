"""The decision model: dynamics, rewards, start distribution and measurements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.decision import Decision
from actmeasure.errors import ModelError, counted, first_repeated, quoted, shown, unknown_name
from actmeasure.model import arrays, gymnasium_tables, structure
from actmeasure.model.measurement import DEFAULT_NAME, Measurement, Sizes
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import real, truth, whole

__all__ = ["Model"]


@dataclass(frozen=True, eq=False)
class Model:
    """The decision model: dynamics, rewards, start distribution and measurements.

    Frozen and validated once; all arrays are read-only. Build it with `from_arrays`, `from_gymnasium` or `load`, or take
    one from `actmeasure.problems`; make a variant with `replace`.

    Attributes
    ----------
    transitions : Transitions
        Probabilities as compressed rows over (state, action); the rows of terminal states are empty.
    rewards : float64 array, shape (S, A)
        Expected reward of taking an action in a state.
    transition_rewards : float64 array, shape (n_entries,), or None
        Reward of every entry of `transitions`, where it depends on the successor.
    terminal : bool array, shape (S,)
        Entering such a state ends the episode, which is noticed for free. An absorbing state is not terminal by itself.
    initial_states, initial_probabilities : arrays, shape (n_initial,)
        The states in which an episode may begin.
    measurements : tuple of Measurement
        The ways to look; number `m` of a `Decision` is `measurements[m - 1]`, and 0 is none.
    discount : float
        In (0, 1]; 1 only where from every state some policy surely ends and no cycle has a positive average reward.
    reveal_start : bool
        Whether the first state is shown for free.
    passive : Measurement, or None
        What is seen for free at every step at which no measurement is made.
    state_names, action_names : tuple of str, or None
    """

    transitions: Transitions
    rewards: FloatArray
    transition_rewards: FloatArray | None
    terminal: npt.NDArray[np.bool_]
    initial_states: npt.NDArray[np.int64]
    initial_probabilities: FloatArray
    measurements: tuple[Measurement, ...]
    discount: float
    reveal_start: bool = True
    passive: Measurement | None = None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    #: How the model was made from others, for planners (see `lifetime` and `system`); not part of its contents.
    origin: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.discount, (int, float)) or not 0 < self.discount <= 1:
            raise ModelError(f"discount is {self.discount!r}, expected a number above 0 and at most 1, such as 0.95")
        structure.check_returns(self)
        if self.discount == 1:
            structure.check_undiscounted(self)

    @classmethod
    def from_arrays(
        cls,
        P: npt.ArrayLike | Sequence[Any],
        R: npt.ArrayLike | Sequence[Any],
        *,
        measuring_cost: npt.ArrayLike | None = None,
        measurements: Iterable[Measurement] | None = None,
        passive: Measurement | None = None,
        discount: float = 0.95,
        initial: int | npt.ArrayLike = 0,
        terminal: npt.ArrayLike | None = None,
        reveal_start: bool | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Model:
        """Build a model from arrays.

        Parameters
        ----------
        P : array of shape (S, A, S), or A scipy sparse matrices of shape (S, S)
            `P[s, a, t]` is the probability of going from `s` to `t` under action `a`. Rows of terminal states are ignored.
        R : array of shape (S, A) or (S, A, S), or A sparse matrices of shape (S, S)
            Reward for taking `a` in `s` (and arriving in `t`).
        measuring_cost : float, or array of shape (S, A), optional
            Price of a measurement that shows the state, paid together with the action: short for
            `measurements=[Measurement.exact("look", cost=measuring_cost)]`.
        measurements : sequence of Measurement, optional
            The ways to look, where there are several or they are not exact.
        passive : Measurement, optional
            What is seen for free at every step at which no measurement is made: an alarm, a part of the state, the observation of
            a POMDP. A measurement replaces it; `Measurement.combined([alarm, visual])` shows both.
        discount : float
        initial : int, or array of shape (S,)
            The state in which every episode begins, or a distribution.
        terminal : bool array of shape (S,), optional
            Entering such a state ends the episode; none by default.
        reveal_start : bool, optional
            Whether the first state is shown for free; by default only where the one measurement is exact and nothing is passive.
        state_names, action_names : sequences of str, optional

        Examples
        --------
        >>> import numpy as np
        >>> import actmeasure as am
        >>> P = np.array([[[0.9, 0.1]], [[0.0, 1.0]]])       # a machine that breaks; one action
        >>> R = np.array([[1.0], [0.0]])
        >>> am.Model.from_arrays(P, R, measuring_cost=0.05, discount=0.95)
        Model(2 states, 1 action, measuring_cost=0.05, discount=0.95, never ends)
        >>> visual = am.Measurement.detection("visual", cost=0.01, pod=[0.05, 0.7])
        >>> opening = am.Measurement.exact("opening", cost=0.2)
        >>> am.Model.from_arrays(P, R, measurements=[visual, opening], discount=0.95)
        Model(2 states, 1 action, measurements visual (0.01) and opening (0.2), discount=0.95, never ends)
        """
        n_states, n_actions = arrays.sizes(P)
        ends = arrays.terminal_mask(terminal, n_states)
        transitions = arrays.transitions(P, n_states, n_actions, ends)
        rewards, transition_rewards = arrays.rewards(R, transitions, ends)
        return cls.assemble(
            transitions, rewards, transition_rewards, ends, initial, measuring_cost, discount, reveal_start,
            state_names, action_names, measurements, passive,
        )  # fmt: skip

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        *,
        measuring_cost: npt.ArrayLike | None = None,
        measurements: Iterable[Measurement] | None = None,
        passive: Measurement | None = None,
        discount: float = 0.95,
        initial: int | npt.ArrayLike | None = None,
        reveal_start: bool | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Model:
        """Build a model from a Gymnasium toy-text environment's transition table `P`.

        There the end of an episode is a property of the transition, not of the state it leads to (Taxi's drop-off cells
        are passed without ending), so one terminal state is added behind the environment's own. Different rewards of
        endings of one (state, action) become their mean.

        Parameters
        ----------
        env : gymnasium.Env
            With `env.unwrapped.P[state][action] = [(probability, next_state, reward, terminated), ...]`.
        measuring_cost : float, or array of shape (S + 1, A), optional
        measurements, passive : optional
            As in `from_arrays`; their arrays have a row for the added state too, which is ignored.
        discount : float
        initial : int or distribution, optional
            By default the environment's own `initial_state_distrib`.
        reveal_start : bool, optional
        action_names : sequence of str, optional
        """
        transitions, rewards, transition_rewards, ends = gymnasium_tables.read_table(env)
        start = gymnasium_tables.initial_distribution(env) if initial is None else initial
        return cls.assemble(
            transitions, rewards, transition_rewards, ends, start, measuring_cost, discount, reveal_start,
            None, action_names, measurements, passive,
        )  # fmt: skip

    @classmethod
    def assemble(
        cls,
        transitions: Transitions,
        rewards: FloatArray,
        transition_rewards: FloatArray | None,
        terminal: npt.NDArray[np.bool_],
        initial: int | npt.ArrayLike,
        measuring_cost: npt.ArrayLike | None,
        discount: float,
        reveal_start: bool | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        measurements: Iterable[Measurement] | None = None,
        passive: Measurement | None = None,
    ) -> Model:
        """Build a model from a checked transition table and rewards of the same layout; all other constructors call this one."""
        n_states, n_actions = transitions.n_states, transitions.n_actions
        states, probabilities = arrays.initial_distribution(initial, terminal)
        for array in (rewards, transition_rewards, terminal):
            if array is not None:
                array.setflags(write=False)
        sizes = Sizes(
            n_states, n_actions, terminal,
            arrays.names(state_names, n_states, "state"), arrays.names(action_names, n_actions, "action"),
        )  # fmt: skip
        looks = _bound_measurements(measuring_cost, measurements, passive, sizes)
        free = None if passive is None else _bound_passive(passive, looks, sizes)
        if reveal_start is None:
            reveal_start = _looks_are_exact(looks, free)
        return cls(
            transitions=transitions,
            rewards=rewards,
            transition_rewards=transition_rewards,
            terminal=terminal,
            initial_states=states,
            initial_probabilities=probabilities,
            measurements=looks,
            discount=real(discount, "discount"),
            reveal_start=truth(reveal_start, "reveal_start"),
            passive=free,
            state_names=sizes.state_names,
            action_names=sizes.action_names,
        )

    def replace(self, **changes: Any) -> Model:
        """Return a copy in which some properties are changed.

        These are `measuring_cost`, `measurements`, `passive`, `discount`, `initial`, `reveal_start`, `state_names` and
        `action_names`. The copy shares the transition table and rewards. `measuring_cost` is the price of the only measurement;
        `reveal_start` stays as it is, and `reveal_start=None` is what `from_arrays` chooses for the measurements.
        """
        fields: dict[str, Any] = {}
        for name, value in changes.items():
            match name:
                case "measuring_cost":
                    fields["measurements"] = (self._only_measurement()._with_cost(value, self._sizes()),)
                case "measurements":
                    if "measuring_cost" in changes:
                        raise ModelError("measuring_cost and measurements are both to be replaced; give one of the two")
                    fields[name] = _bound_measurements(None, () if value is None else value, None, self._sizes())
                case "passive":
                    fields[name] = value
                case "initial":
                    states, probabilities = arrays.initial_distribution(value, self.terminal)
                    fields |= {"initial_states": states, "initial_probabilities": probabilities}
                case "discount":
                    fields[name] = real(value, name)
                case "reveal_start":
                    fields[name] = None if value is None else truth(value, name)
                case "state_names":
                    fields[name] = arrays.names(value, self.n_states, "state")
                case "action_names":
                    fields[name] = arrays.names(value, self.n_actions, "action")
                case _:
                    known = (
                        "measuring_cost", "measurements", "passive", "discount", "initial", "reveal_start", "state_names",
                        "action_names",
                    )  # fmt: skip
                    raise ModelError(unknown_name("property to replace", name, known))
        return replace(self, origin=None, **self._with_what_follows(fields))

    def _with_what_follows(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return changed fields with what depends on several: the passive outcome beside measurements, `reveal_start=None`."""
        looks, free = fields.get("measurements", self.measurements), fields.get("passive", self.passive)
        if free is not None and {"measurements", "passive"} & set(fields):
            fields["passive"] = free = _bound_passive(free, looks, self._sizes())
        if fields.get("reveal_start", False) is None:
            fields["reveal_start"] = _looks_are_exact(looks, free)
        return fields

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model from a `.json`, `.npz`, `.pomdp` or `.pomdpx` file."""
        from actmeasure import files

        return files.load_model(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as `.json` (readable), `.npz` (fast) or `.pomdp` (for other solvers), by the path's ending."""
        from actmeasure import files

        files.save_model(self, path)

    @property
    def n_states(self) -> int:
        """Number of states, terminal ones included."""
        return self.transitions.n_states

    @property
    def n_actions(self) -> int:
        """Number of control actions."""
        return self.transitions.n_actions

    @property
    def looks_are_exact(self) -> bool:
        """Whether there is one measurement, it is exact, and nothing is seen without it."""
        return _looks_are_exact(self.measurements, self.passive)

    @property
    def is_exact_look_model(self) -> bool:
        """Whether looks are exact and can be made with every action: what schedules and the learners of the paper assume."""
        return self.looks_are_exact and self.measurements[0].with_actions is None

    def require_exact_looks(self, what: str, remedy: str) -> None:
        """Raise a `ModelError` that `what` needs exact looks, and what to use instead, unless `is_exact_look_model`."""
        if self.is_exact_look_model:
            return
        if not self.measurements:
            reason = "this model has none"
        elif len(self.measurements) > 1:
            reason = f"this model has {len(self.measurements)}"
        elif not self.measurements[0].is_exact:
            reason = f"that of this model, {self.measurements[0].name!r}, is not exact"
        elif self.passive is not None:
            reason = f"this model also shows {self.passive.name!r} without one"
        else:
            reason = f"that of this model, {self.measurements[0].name!r}, cannot be made with every action"
        raise ModelError(
            f"{what} needs one exact measurement that can be made with every action, and {reason}; {remedy}"
        )

    @property
    def measuring_cost(self) -> float | FloatArray:
        """Price of the only measurement: a number, or an array of shape (S, A)."""
        return self._only_measurement().cost

    @cached_property
    def measuring_costs(self) -> FloatArray:
        """Price of the only measurement for every state and action, shape (S, A)."""
        return self._only_measurement().table(self.n_states, self.n_actions)

    def _only_measurement(self) -> Measurement:
        if len(self.measurements) != 1:
            raise ModelError(
                f"the model has {len(self.measurements)} measurements, so that there is no one measuring_cost; use "
                "model.measurements[i].cost, or replace(measurements=[...])"
            )
        return self.measurements[0]

    def measurement_number(self, measurement: int | str) -> int:
        """Return the number of a measurement that is given by number (0 is none, True is 1) or by name."""
        if isinstance(measurement, str):
            names = [known.name for known in self.measurements]
            if measurement not in names:
                raise ModelError(unknown_name("measurement", measurement, names or ["(there is none)"]))
            return names.index(measurement) + 1
        if isinstance(measurement, (bool, np.bool_)):
            measurement = int(measurement)
        return whole(measurement, "the measurement", 0, len(self.measurements), what="a name, or a whole number")

    def shown_by(self, measurement: int) -> Measurement | None:
        """Return what shows the outcome when measurement `measurement` is made; for 0 the passive one, or None."""
        return self.passive if measurement == 0 else self.measurements[measurement - 1]

    def n_outcomes(self, measurement: int) -> int:
        """Return the number of outcomes of a measurement, by number; 0 where nothing is seen."""
        shows = self.shown_by(measurement)
        if shows is None:
            return 0
        return self.n_states if shows.law is None else shows.law.n_outcomes

    def measurement_name(self, measurement: int) -> str:
        """Return the name of a measurement, 1 to k, for display; escaped likewise."""
        return shown(self.measurements[measurement - 1].name)

    def outcome_name(self, measurement: int, outcome: int) -> str:
        """Return the name of an outcome for display, or its number; a state's name where the measurement is exact."""
        shows = self.shown_by(measurement)
        if shows is None:
            return "nothing"
        return self.state_name(outcome) if shows.law is None else shows.outcome_name(outcome)

    @cached_property
    def allowed_decisions(self) -> npt.NDArray[np.bool_]:
        """Whether each measurement can be made with each action, shape (A, 1 + k); measurement 0 is none."""
        allowed = np.ones((self.n_actions, 1 + len(self.measurements)), dtype=bool)
        for number, measurement in enumerate(self.measurements, start=1):
            if measurement.with_actions is not None:
                allowed[:, number] = np.isin(np.arange(self.n_actions), np.array(measurement.with_actions))
        allowed.setflags(write=False)
        return allowed

    def decision(self, choices: Sequence[Any]) -> Decision:
        """Return the decision of a system's model (`actmeasure.system`) for a choice of each component.

        Parameters
        ----------
        choices : sequence of N choices
            For each component the name of an action, without a measurement; the name of a measurement that goes with one action
            only; or a pair (action, measurement), by name or number. A number alone is an action.
        """
        find = getattr(self.origin, "decision", None)
        if find is None:
            raise ModelError(
                "this model is not that of a system, or was changed since, so that it has no components to choose for; use "
                "Decision(action, measurement)"
            )
        decision: Decision = find(choices)
        return decision

    def _sizes(self) -> Sizes:
        return Sizes(self.n_states, self.n_actions, self.terminal, self.state_names, self.action_names)

    @property
    def initial_distribution(self) -> FloatArray:
        """Probability of beginning in each state, shape (S,)."""
        dense = np.zeros(self.n_states)
        dense[self.initial_states] = self.initial_probabilities
        return dense

    @property
    def start_is_known(self) -> bool:
        """Whether the agent knows the state at the start, because it is shown or there is only one."""
        return self.reveal_start or len(self.initial_states) == 1

    @property
    def largest_reward(self) -> float:
        """Largest reward of a single transition."""
        return float(
            (self.rewards[~self.terminal] if self.transition_rewards is None else self.transition_rewards).max()
        )

    def state_name(self, state: int) -> str:
        """Return the state's name for display, or its number where states have no names.

        Control characters are escaped; `state_names` has the name as it is.
        """
        return str(state) if self.state_names is None else shown(self.state_names[state])

    def action_name(self, action: int) -> str:
        """Return the action's name for display, or its number where actions have no names; escaped likewise."""
        return str(action) if self.action_names is None else shown(self.action_names[action])

    def describe_state(self, state: int) -> str:
        """Return `state 3`, or `state 3 ('broken')` where states have names, for messages."""
        return f"state {state}" if self.state_names is None else f"state {state} ({self.state_names[state]!r})"

    def equals(self, other: Model) -> bool:
        """Return whether two models are equal to the last bit, names included; so does `==`."""
        if not isinstance(other, Model):
            return False
        mine, theirs = self._contents(), other._contents()
        return all(np.array_equal(mine[key], theirs[key]) for key in mine) and self._same_measurements(other)

    def _same_measurements(self, other: Model) -> bool:
        mine, theirs = (
            [*model.measurements, *([] if model.passive is None else [model.passive])] for model in (self, other)
        )
        same_kinds = len(self.measurements) == len(other.measurements) and len(mine) == len(theirs)
        return same_kinds and all(one.equals(two) for one, two in zip(mine, theirs, strict=True))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, Model) else NotImplemented

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what was derived from them and kept is not copied or sent to other processes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __hash__(self) -> int:
        # A few numbers tell most models apart; hashing the whole table would make a dictionary of models slow.
        sizes = (self.n_states, self.n_actions, len(self.transitions.successors))
        return hash((sizes, self.discount, self.reveal_start, self.state_names, self.action_names))

    def _contents(self) -> dict[str, Any]:
        table = self.transitions
        return {
            "sizes": (self.n_states, self.n_actions),
            "offsets": table.offsets,
            "successors": table.successors,
            "probabilities": table.probabilities,
            "rewards": self.rewards,
            "transition_rewards": np.zeros(0) if self.transition_rewards is None else self.transition_rewards,
            "terminal": self.terminal,
            "initial_states": self.initial_states,
            "initial_probabilities": self.initial_probabilities,
            "numbers": (self.discount, self.reveal_start),
            "state_names": self.state_names or (),
            "action_names": self.action_names or (),
        }

    def __repr__(self) -> str:
        ends = int(self.terminal.sum())
        actions = counted(self.n_actions, "action")
        ending = f"{ends:,} terminal" if ends else "never ends"
        return f"Model({self.n_states:,} states, {actions}, {self._measuring()}, discount={self.discount:g}, {ending})"

    def _measuring(self) -> str:
        """Return the measurements in words, for `repr`."""

        def price(measurement: Measurement) -> str:
            return f"{measurement.cost:g}" if isinstance(measurement.cost, float) else "per state and action"

        if self.looks_are_exact:
            return f"measuring_cost={price(self.measurements[0])}"
        listed = [f"{shown(one.name)} ({price(one)})" for one in self.measurements[:6]]
        listed += ["..."] * (len(self.measurements) > 6)
        joined = " and ".join(listed) if len(listed) == 2 else ", ".join(listed)
        text = f"measurement{'s' * (len(listed) > 1)} {joined}" if listed else "no measurements"
        return text if self.passive is None else f"{text}, passive {shown(self.passive.name)}"


def _looks_are_exact(measurements: tuple[Measurement, ...], passive: Measurement | None) -> bool:
    return len(measurements) == 1 and measurements[0].is_exact and passive is None


def _bound_measurements(
    measuring_cost: npt.ArrayLike | None,
    measurements: Iterable[Measurement] | None,
    passive: Measurement | None,
    sizes: Sizes,
) -> tuple[Measurement, ...]:
    """Return the measurements of a model, checked: those given, or an exact one with the price `measuring_cost`."""
    if measuring_cost is not None:
        if measurements is not None:
            raise ModelError(
                "measuring_cost and measurements are both given; put the price into the measurement: "
                "measurements=[Measurement.exact('look', cost=...)]"
            )
        return (Measurement.exact(DEFAULT_NAME)._with_cost(measuring_cost, sizes),)
    if measurements is None:
        if passive is None:
            raise ModelError(
                "a model needs to know what a look costs; pass measuring_cost=..., measurements=[...], or passive=... for "
                "observations that come for free"
            )
        return ()
    is_list = isinstance(measurements, Iterable) and not isinstance(measurements, str)
    given = tuple(measurements) if is_list else ()
    if not is_list or not all(isinstance(one, Measurement) for one in given):
        raise ModelError(f"measurements are {quoted(measurements)}, expected a list of Measurement")
    names = [one.name for one in given]
    twice = first_repeated(names)
    if twice is not None:
        raise ModelError(f"two measurements are named {twice!r}; give each a name of its own")
    return tuple(one.bound(sizes) for one in given)


def _bound_passive(passive: Measurement, measurements: tuple[Measurement, ...], sizes: Sizes) -> Measurement:
    """Return what is seen without a measurement, checked: it has no price and comes with every action."""
    if not isinstance(passive, Measurement):
        raise ModelError(
            f"passive is {quoted(passive)}, expected a Measurement, or None where nothing is seen for free"
        )
    bound = passive.bound(sizes)
    if np.any(np.asarray(bound.cost) != 0):
        raise ModelError(f"the passive measurement {passive.name!r} has a price, expected 0: it is seen for free")
    if bound.with_actions is not None:
        raise ModelError(
            f"the passive measurement {passive.name!r} has with_actions, but it comes with every action; leave it out, and let "
            "its probabilities, of shape (A, S, O), depend on the action"
        )
    if any(one.name == bound.name for one in measurements):
        raise ModelError(f"the passive measurement and another one are both named {bound.name!r}; rename one of them")
    return replace(bound, cost=0.0)
