"""POMCP: decide by simulating (Silver and Veness, 2010), with what the act-then-measure paper changed as options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError, quoted, unknown_name
from actmeasure.kernels import pomcp, search_tree, streams
from actmeasure.model import Model
from actmeasure.planners.value_iteration import q_mdp
from actmeasure.settings import real, truth, whole
from actmeasure.world import world

__all__ = ["PATIENCE", "POMCP", "ROLLOUTS", "least_reward"]

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
        self._tree, self._spare = (search_tree.make_tree(2 * model.n_actions, nodes) for _ in range(2))
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
        search_tree.clear(self._tree)
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
        choice = int(pomcp.best_choice(self._tree, search_tree.ROOT, self._stream))
        self.value = float(self._tree.means[search_tree.ROOT, choice])
        return Decision(choice // 2, choice % 2 == 1)

    def observe(self, decision: Decision, observation: int | None) -> None:
        """Go on after a decision was carried out, with the state if it was seen, and the part of the tree that still holds."""
        action, measure = decision
        seen = self.model.n_states if observation is None else int(observation)
        edge = (2 * action + measure) * (self.model.n_states + 1) + seen
        following = search_tree.find(self._tree, search_tree.ROOT, edge)
        if following == search_tree.NONE:
            search_tree.clear(self._tree)
        else:
            search_tree.keep_below(self._tree, following, self._spare, self._origin)
            self._tree, self._spare = self._spare, self._tree
        if observation is not None:
            self._particles[:] = observation
            return
        made_up = pomcp.move_particles(self._world, self._particles, action, self._stream)
        self.made_up += int(made_up)
        self.lost += int(made_up == len(self._particles))

    def q_values(self) -> Any:
        """What each action was found to be worth, without and with a look, float64 (A, 2); nan where it was never tried."""
        means = np.where(self._tree.tries[search_tree.ROOT] > 0, self._tree.means[search_tree.ROOT], np.nan)
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
