"""POMCP: decide by simulating (Silver and Veness, 2010), with what the act-then-measure paper changed as options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError, quoted, unknown_name
from actmeasure.kernels import pomcp, streams
from actmeasure.kernels.simulate import World, first_state, move
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import q_mdp
from actmeasure.planning.budget import Budget
from actmeasure.settings import MOST_EPISODES, MOST_STEPS, real, truth, whole
from actmeasure.world import world

__all__ = ["PATIENCE", "POMCP", "ROLLOUTS", "Mean", "SimulatedReturn", "least_reward", "simulate"]

#: How simulations go on below the tree.
ROLLOUTS = {"random": pomcp.RANDOM, "blind": pomcp.BLIND, "q-mdp": pomcp.GIVEN, "looking": pomcp.LOOKING}

#: Of the span of values, for `exploration=None`: found to be good on the problems of the paper.
SHARE_OF_SPAN = 0.4
#: The largest discount with which values for rollouts and bounds are found; without any, they need not be finite.
PATIENCE = 0.99
#: Most simulations for a decision, which Ctrl-C cannot stop.
MOST_SIMULATIONS = 10**9
#: Most steps ahead, particles and nodes: what is kept for each must fit into memory.
MOST_ENTRIES = 10**8


class POMCP:
    """Partially observable Monte-Carlo planning over a model.

    Each decision simulates many episodes from the particles of the current belief through a tree of histories. What was
    learned about the history that then really follows is kept for the next decision.

    Parameters
    ----------
    model : Model
    simulations : int
        For each decision.
    depth : int
        Steps that a simulation looks ahead.
    exploration : float or None
        Weight of the upper confidence bounds against the means; about the size of the returns. None for 0.4 times the
        difference between the best and the worst action anywhere if looking were free.
    particles : int
        In the belief.
    discount : float, optional
        The model's own by default.
    rollout : str
        How a simulation goes on below the tree. `random`: any action, with or without a look. `blind`: any action, never
        looking, as the act-then-measure paper does, so that looks do not make every unexplored way seem bad. `q-mdp`: the best
        action of each state if looking were free. `looking`: the best action of each state if one had to look at every step,
        and the price of it.
    clamp : bool
        Whether a negative return of an action without a look is taken for 0, as the paper does. Only for models without
        negative rewards.
    share : bool
        Whether a simulation of an action with a look also informs the same action without one, and the other way round: both
        lead to the same state.
    nodes : int
        The most histories that the tree may hold, which bounds the memory.
    seed : int

    Attributes
    ----------
    value : float
        What the last decision is worth, by its simulations.
    made_up : int
        Particles that were replaced so far, because the episode went on where theirs ended.
    lost : int
        How often all particles had ended and the belief was made up from all states.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.measuring_value(measuring_cost=0.05)
    >>> planner = am.planners.POMCP(model, simulations=5_000, exploration=1.0, seed=0)
    >>> planner.decide(am.Belief.at(0))
    Decision(action=1, measure=True)
    """

    def __init__(
        self,
        model: Model,
        simulations: int = 25_000,
        depth: int = 10,
        exploration: float | None = 10.0,
        particles: int = 2_000,
        discount: float | None = None,
        rollout: str = "blind",
        clamp: bool = False,
        share: bool = False,
        nodes: int = 100_000,
        seed: int = 0,
    ) -> None:
        if not isinstance(model, Model):
            raise PlanError(f"the model is {quoted(model)}, expected a Model")
        if not isinstance(rollout, str) or rollout not in ROLLOUTS:
            raise PlanError(unknown_name("rollout", rollout, ROLLOUTS))
        self.model = model
        self.simulations = whole(simulations, "simulations", 1, MOST_SIMULATIONS, PlanError)
        self._rules = pomcp.Rules(
            discount=_checked_discount(model.discount if discount is None else discount),
            depth=whole(depth, "depth", 1, MOST_ENTRIES, PlanError),
            exploration=_span(model) if exploration is None else _not_negative(exploration),
            rollout=ROLLOUTS[rollout],
            clamp=truth(clamp, "clamp", PlanError),
            share=truth(share, "share", PlanError),
        )
        if clamp and least_reward(model) < 0:
            raise PlanError(
                "clamp takes negative returns without a look for 0, but this model has negative rewards; use clamp=False"
            )
        self._world = world(model)
        self._actions = _rollout_actions(model.replace(discount=min(self._rules.discount, PATIENCE)), rollout)
        self._particles = np.zeros(whole(particles, "particles", 1, MOST_ENTRIES, PlanError), np.int64)
        self._path = pomcp.make_path(self._rules.depth)
        nodes = whole(nodes, "nodes", 2, MOST_ENTRIES, PlanError)
        self._tree, self._spare = (pomcp.make_tree(2 * model.n_actions, nodes) for _ in range(2))
        self._origin = np.zeros(nodes, np.int64)
        self._stream = streams.make_stream()
        self.reseed(whole(seed, "seed", error=PlanError))
        self.value = 0.0
        self.made_up, self.lost = 0, 0
        self._begun = False

    def reseed(self, seed: int, episode: int = 0) -> None:
        """Take the random numbers of an episode."""
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, belief: Belief) -> None:
        """Forget the tree, and take up a belief."""
        if belief.is_over or belief.states[-1] >= self.model.n_states or self.model.terminal[belief.states].any():
            raise PlanError("the belief is empty, or holds states in which an episode of the model does not run")
        pomcp.clear(self._tree)
        uniform = np.array([streams.random(self._stream) for _ in range(len(self._particles))])
        places = np.searchsorted(np.cumsum(belief.probabilities), uniform, side="right")
        self._particles[:] = belief.states[np.minimum(places, len(belief.states) - 1)]
        self._begun = True

    def decide(self, belief: Belief | None = None) -> Decision:
        """The best decision in a belief; without one, in that which `begin` and `observe` have led to."""
        if belief is not None:
            self.begin(belief)
        if not self._begun:
            raise PlanError("there is no belief to decide from; pass one: planner.decide(Belief.at(state))")
        pomcp.search(
            self._world, self._tree, self._rules, self._particles, self.simulations, self._actions, self._path,
            self._stream,
        )  # fmt: skip
        choice = int(pomcp.best_choice(self._tree, pomcp.ROOT, self._stream))
        self.value = float(self._tree.means[pomcp.ROOT, choice])
        return Decision(choice // 2, choice % 2 == 1)

    def observe(self, decision: Decision, observation: int | None) -> None:
        """Go on after a decision was carried out, with the state if it was seen, and the part of the tree that still holds."""
        action, measure = decision
        seen = self.model.n_states if observation is None else int(observation)
        edge = (2 * action + measure) * (self.model.n_states + 1) + seen
        following = pomcp.find(self._tree, pomcp.ROOT, edge)
        if following == pomcp.NONE:
            pomcp.clear(self._tree)
        else:
            pomcp.keep_below(self._tree, following, self._spare, self._origin)
            self._tree, self._spare = self._spare, self._tree
        if observation is not None:
            self._particles[:] = observation
            return
        made_up = pomcp.move_particles(self._world, self._particles, action, self._stream)
        self.made_up += int(made_up)
        self.lost += int(made_up == len(self._particles))

    def q_values(self) -> Any:
        """What each action was found to be worth, without and with a look, float64 (A, 2); nan where it was never tried."""
        means = np.where(self._tree.tries[pomcp.ROOT] > 0, self._tree.means[pomcp.ROOT], np.nan)
        return means.reshape(-1, 2)

    def belief(self) -> Belief:
        """The particles as a distribution."""
        return Belief.from_distribution(np.bincount(self._particles, minlength=self.model.n_states))

    @property
    def histories(self) -> int:
        """How many histories the tree holds."""
        return int(self._tree.used[0])

    @property
    def memory(self) -> int:
        """Bytes of both trees, of which one is in use; they never grow."""
        return sum(array.nbytes for tree in (self._tree, self._spare) for array in tree)


def _span(model: Model) -> float:
    """A weight for the confidence bounds that fits the size of the model's rewards."""
    values = q_mdp(model.replace(discount=min(model.discount, PATIENCE)))[~model.terminal]
    return SHARE_OF_SPAN * (float(np.ptp(values)) or 1.0)


def _rollout_actions(model: Model, rollout: str) -> npt.NDArray[np.int64]:
    """The action to take in each state in rollouts, shape (S,); none matters where they are random."""
    if rollout == "q-mdp":
        return np.asarray(q_mdp(model).argmax(axis=1))
    if rollout == "looking":
        charged = np.where(model.terminal[:, None], 0.0, model.rewards - model.measuring_costs)
        return np.asarray(q_mdp(replace(model, rewards=charged, transition_rewards=None)).argmax(axis=1))
    return np.zeros(model.n_states, np.int64)


def least_reward(model: Model) -> float:
    """The smallest reward that a single step of a model can pay."""
    return float((model.rewards if model.transition_rewards is None else model.transition_rewards).min(initial=0.0))


def _checked_discount(discount: Any) -> float:
    found = real(discount, "discount", PlanError)
    if not 0 < found <= 1:
        raise PlanError(f"discount is {discount!r}, expected a number above 0 and at most 1, such as 0.95")
    return found


def _not_negative(exploration: Any) -> float:
    found = real(exploration, "exploration", PlanError)
    if not 0 <= found < np.inf:
        raise PlanError(f"exploration is {exploration!r}, expected a number from 0 up, about the size of the returns")
    return found


# ----------------------------------------------------------------------------------------------------
# What a planner earns that decides as it goes, by simulation.
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mean:
    """A mean over episodes, and its 95 % interval by Student's t; not numbers for one episode, or equal ones."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, found: FloatArray) -> Mean:
        """Of one number for every episode."""
        return cls(*statistics.mean(found))

    def __str__(self) -> str:
        return f"{self.value:.4g}" if math.isnan(self.low) else f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class SimulatedReturn:
    """What a planner earned in simulated episodes.

    Attributes
    ----------
    discounted_return, scalarized_return : Mean
        Reward minus measuring cost, with the model's discount and without one.
    measurements, steps : Mean
    episodes : int
        How many were finished.
    seconds : float
    stopped : str
        `done`, `time` or `interrupted`.
    lost : int
        How often all particles of a belief had died out and it was made up.
    """

    discounted_return: Mean
    scalarized_return: Mean
    measurements: Mean
    steps: Mean
    episodes: int
    seconds: float
    stopped: str
    lost: int

    def __str__(self) -> str:
        rows = {
            "discounted return": self.discounted_return, "return": self.scalarized_return,
            "looks": self.measurements, "steps": self.steps,
        }  # fmt: skip
        lines = [f"{name:<18} {mean}" for name, mean in rows.items()]
        lines.append(f"{'episodes':<18} {self.episodes} in {self.seconds:.1f} s; the intervals cover 95 %")
        if self.lost:
            lines.append(f"A belief had died out and was made up {self.lost} times; use more particles.")
        if self.stopped != "done":
            why = "the time was over" if self.stopped == "time" else "it was stopped"
            lines.append(f"There are fewer episodes than asked for, as {why}.")
        return "\n".join(lines)


def simulate(
    planner: POMCP,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int = 200,
    time_limit: float | None = None,
    progress: Callable[[int, Mean], None] | None = None,
) -> SimulatedReturn:
    """Let a planner act in the model it plans on, and say what it earns.

    Parameters
    ----------
    planner : POMCP
    episodes : int
    seed : int
        Episodes are those of `train` with the same seed.
    max_steps : int
        An episode is cut off after this many steps.
    time_limit : float, optional
        Seconds, after which the current episode is the last.
    progress : function, optional
        Called after every episode with how many there are and the discounted return so far.

    Returns
    -------
    SimulatedReturn
        Of fewer episodes, if the time was over or Ctrl-C was pressed.

    Examples
    --------
    >>> import actmeasure as am
    >>> planner = am.planners.POMCP(am.problems.measuring_value(), simulations=500, exploration=1.0)
    >>> am.planners.simulate(planner, episodes=20).episodes
    20
    """
    if not isinstance(planner, POMCP):
        raise PlanError(f"the planner is {quoted(planner)}, expected a POMCP")
    count, seed = whole(episodes, "episodes", 1, MOST_EPISODES, PlanError), whole(seed, "seed", error=PlanError)
    max_steps = whole(max_steps, "max_steps", 1, MOST_STEPS, PlanError)
    budget = Budget(None if time_limit is None else _seconds(time_limit))
    place, entropy, stream = world(planner.model), streams.entropy_words(seed), streams.make_stream()
    found, lost, stopped = np.zeros((count, 4)), planner.lost, None
    with budget.deferred_interrupts():
        for episode in range(count):
            planner.reseed(seed, episode)
            streams.seed_stream(stream, entropy, episode, streams.WORLD)
            found[episode] = _one_episode(planner, place, stream, max_steps)
            if progress is not None:
                progress(episode + 1, Mean.of(found[: episode + 1, 0]))
            stopped = budget.stops()
            if stopped is not None:
                break
    done = found[: episode + 1]
    stopped = "done" if len(done) == count or stopped is None else stopped
    discounted, total, looks, steps = (Mean.of(done[:, column]) for column in range(4))
    return SimulatedReturn(discounted, total, looks, steps, len(done), budget.elapsed, stopped, planner.lost - lost)


def _seconds(limit: float) -> float:
    found = real(limit, "time_limit", PlanError)
    if not found > 0:
        raise PlanError(f"time_limit is {limit!r}, expected a number of seconds above 0")
    return found


def _one_episode(planner: POMCP, place: World, stream: FloatArray, max_steps: int) -> tuple[float, float, int, int]:
    """Discounted and undiscounted return, measurements and steps of an episode."""
    model = planner.model
    state = int(first_state(place, stream))
    planner.begin(Belief.at(state) if model.reveal_start else Belief.start(model))
    discounted, total, looks, factor = 0.0, 0.0, 0, 1.0
    for step in range(1, max_steps + 1):
        decision = planner.decide()
        cost = float(model.measuring_costs[state, decision.action]) if decision.measure else 0.0
        state, reward, ended = move(place, state, decision.action, stream)
        discounted += factor * (reward - cost)
        total, looks, factor = total + reward - cost, looks + decision.measure, factor * model.discount
        if ended:
            return discounted, total, looks, step
        planner.observe(decision, int(state) if decision.measure else None)
    return discounted, total, looks, max_steps
