"""The decision model: dynamics, rewards, start distribution and measurements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError, shown, unknown_name
from actmeasure.model import arrays, gymnasium_tables, structure
from actmeasure.model.measurement import ExactMeasurement
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import real, truth

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
    measurement : ExactMeasurement
        The price of a measurement, which shows the state that the step led to.
    discount : float
        In (0, 1]; 1 only where from every state some policy surely ends and no cycle has a positive average reward.
    reveal_start : bool
        Whether the first state is shown for free.
    state_names, action_names : tuple of str, or None
    """

    transitions: Transitions
    rewards: FloatArray
    transition_rewards: FloatArray | None
    terminal: npt.NDArray[np.bool_]
    initial_states: npt.NDArray[np.int64]
    initial_probabilities: FloatArray
    measurement: ExactMeasurement
    discount: float
    reveal_start: bool = True
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

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
        measuring_cost: npt.ArrayLike,
        discount: float = 0.95,
        initial: int | npt.ArrayLike = 0,
        terminal: npt.ArrayLike | None = None,
        reveal_start: bool = True,
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
        measuring_cost : float, or array of shape (S, A)
            Price of a measurement, paid together with the action.
        discount : float
        initial : int, or array of shape (S,)
            The state in which every episode begins, or a distribution.
        terminal : bool array of shape (S,), optional
            Entering such a state ends the episode; none by default.
        reveal_start : bool
            Whether the first state is shown for free.
        state_names, action_names : sequences of str, optional

        Examples
        --------
        >>> import numpy as np
        >>> import actmeasure as am
        >>> P = np.array([[[0.9, 0.1]], [[0.0, 1.0]]])       # a machine that breaks; one action
        >>> R = np.array([[1.0], [0.0]])
        >>> am.Model.from_arrays(P, R, measuring_cost=0.05, discount=0.95)
        Model(2 states, 1 action, measuring_cost=0.05, discount=0.95, never ends)
        """
        n_states, n_actions = arrays.sizes(P)
        ends = arrays.terminal_mask(terminal, n_states)
        transitions = arrays.transitions(P, n_states, n_actions, ends)
        rewards, transition_rewards = arrays.rewards(R, transitions, ends)
        return cls.assemble(
            transitions, rewards, transition_rewards, ends, initial, measuring_cost, discount, reveal_start,
            state_names, action_names,
        )  # fmt: skip

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        *,
        measuring_cost: npt.ArrayLike,
        discount: float = 0.95,
        initial: int | npt.ArrayLike | None = None,
        reveal_start: bool = True,
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
        measuring_cost : float, or array of shape (S + 1, A)
        discount : float
        initial : int or distribution, optional
            By default the environment's own `initial_state_distrib`.
        reveal_start : bool
        action_names : sequence of str, optional
        """
        transitions, rewards, transition_rewards, ends = gymnasium_tables.read_table(env)
        start = gymnasium_tables.initial_distribution(env) if initial is None else initial
        return cls.assemble(
            transitions, rewards, transition_rewards, ends, start, measuring_cost, discount, reveal_start,
            None, action_names,
        )  # fmt: skip

    @classmethod
    def assemble(
        cls,
        transitions: Transitions,
        rewards: FloatArray,
        transition_rewards: FloatArray | None,
        terminal: npt.NDArray[np.bool_],
        initial: int | npt.ArrayLike,
        measuring_cost: npt.ArrayLike,
        discount: float,
        reveal_start: bool = True,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> Model:
        """Build a model from a checked transition table and rewards of the same layout; all other constructors call this one."""
        n_states, n_actions = transitions.n_states, transitions.n_actions
        states, probabilities = arrays.initial_distribution(initial, terminal)
        for array in (rewards, transition_rewards, terminal):
            if array is not None:
                array.setflags(write=False)
        return cls(
            transitions=transitions,
            rewards=rewards,
            transition_rewards=transition_rewards,
            terminal=terminal,
            initial_states=states,
            initial_probabilities=probabilities,
            measurement=ExactMeasurement.checked(measuring_cost, n_states, n_actions, terminal),
            discount=real(discount, "discount"),
            reveal_start=truth(reveal_start, "reveal_start"),
            state_names=arrays.names(state_names, n_states, "state"),
            action_names=arrays.names(action_names, n_actions, "action"),
        )

    def replace(self, **changes: Any) -> Model:
        """Return a copy with another `measuring_cost`, `discount`, `initial`, `reveal_start`, `state_names` or `action_names`.

        The copy shares the transition table and rewards.
        """
        fields: dict[str, Any] = {}
        for name, value in changes.items():
            match name:
                case "measuring_cost":
                    fields["measurement"] = ExactMeasurement.checked(
                        value, self.n_states, self.n_actions, self.terminal
                    )
                case "initial":
                    states, probabilities = arrays.initial_distribution(value, self.terminal)
                    fields |= {"initial_states": states, "initial_probabilities": probabilities}
                case "discount":
                    fields[name] = real(value, name)
                case "reveal_start":
                    fields[name] = truth(value, name)
                case "state_names":
                    fields[name] = arrays.names(value, self.n_states, "state")
                case "action_names":
                    fields[name] = arrays.names(value, self.n_actions, "action")
                case _:
                    known = ("measuring_cost", "discount", "initial", "reveal_start", "state_names", "action_names")
                    raise ModelError(unknown_name("property to replace", name, known))
        return replace(self, **fields)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model from a `.json`, `.npz` or `.pomdp` file."""
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
    def measuring_cost(self) -> float | FloatArray:
        """Price of a measurement: a number, or an array of shape (S, A)."""
        return self.measurement.cost

    @cached_property
    def measuring_costs(self) -> FloatArray:
        """Price of a measurement for every state and action, shape (S, A)."""
        return self.measurement.table(self.n_states, self.n_actions)

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
        return all(np.array_equal(mine[key], theirs[key]) for key in mine)

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
            "measuring_cost": self.measuring_cost,
            "numbers": (self.discount, self.reveal_start),
            "state_names": self.state_names or (),
            "action_names": self.action_names or (),
        }

    def __repr__(self) -> str:
        cost = f"{self.measuring_cost:g}" if isinstance(self.measuring_cost, float) else "per state and action"
        ends = int(self.terminal.sum())
        actions = f"{self.n_actions} action" + "s" * (self.n_actions != 1)
        ending = f"{ends:,} terminal" if ends else "never ends"
        return (
            f"Model({self.n_states:,} states, {actions}, measuring_cost={cost}, discount={self.discount:g}, {ending})"
        )
