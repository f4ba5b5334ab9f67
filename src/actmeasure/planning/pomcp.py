"""POMCP (Silver and Veness, 2010): Monte-Carlo tree search from a belief; and the return of such a planner, by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from actmeasure import statistics
from actmeasure.belief import Belief
from actmeasure.decision import Decision, expected_decision, is_valid
from actmeasure.errors import ModelError, PlanError, quoted, unknown_name
from actmeasure.kernel_arrays import measured_world
from actmeasure.kernels import pomcp, streams
from actmeasure.kernels.outcomes import outcome_probability
from actmeasure.kernels.simulate import MeasuredWorld, first_state, measured_step
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import q_mdp
from actmeasure.planning.budget import Budget
from actmeasure.settings import MOST_EPISODES, MOST_STEPS, amount, discount_factor, truth, whole
from actmeasure.statistics import Interval
from actmeasure.text import interval_text, name_value_lines

__all__ = ["LARGEST_DISCOUNT", "POMCP", "ROLLOUTS", "SimulatedReturn", "least_reward", "simulate"]

#: Rollout policies by name: how a simulation is continued below the tree.
ROLLOUTS = {"random": pomcp.RANDOM, "blind": pomcp.BLIND, "q-mdp": pomcp.GIVEN, "looking": pomcp.LOOKING}

#: `exploration=None` is this fraction of the range of Q values; chosen by experiments on the problems of the paper.
EXPLORATION_FRACTION = 0.4
#: Largest discount with which values for rollouts and for `exploration=None` are computed; at 1 they may be infinite.
LARGEST_DISCOUNT = 0.99
#: Largest number of simulations of one decision, which Ctrl-C cannot interrupt.
MOST_SIMULATIONS = 10**9
#: Largest depth, number of particles and number of nodes: arrays of these lengths must fit into memory.
LARGEST_ARRAY = 10**8
#: Effective number of particles below which they are drawn from the exact belief, as a fraction of their number.
LEAST_EFFECTIVE = 0.1
#: Largest number of transitions, times steps since it was last computed, for which the exact belief is computed.
MOST_EXACT_WORK = 10**7


class POMCP:
    """Partially observable Monte-Carlo planning on a known model: a `Policy` that searches at every decision.

    Each decision simulates many episodes from the particles of the current belief through a tree of histories, which branches by
    decisions and their outcomes. The subtree of the history that then follows is kept for the next decision. Particles are moved
    with the decision and weighted by the probability of its outcome.

    Parameters
    ----------
    model : Model
    simulations : int
        Number of simulations for each decision.
    depth : int
        Number of steps of a simulation.
    exploration : float or None
        Weight of the confidence bound against the mean of an action, of the size of the returns. None for 0.4 times
        the range of `q_mdp` over all states and actions, or the largest price where looks are not exact and that is more.
    particles : int
        Number of particles of the belief.
    discount : float, optional
        The model's own by default.
    rollout : str
        How a simulation is continued below the tree. `random`: a random action, measured with probability 1/2. `blind`: a
        random action, never measured, as in the act-then-measure paper. `q-mdp`: the best action of each state if measuring
        were free. `looking`: the best action of each state if every step had to be measured, at its price; of several
        measurements that of the cheapest exact one that is allowed with the action, or else of the cheapest.
    clamp : bool
        Whether a negative return of an action without a measurement counts as 0, as in the paper. Only for models without
        negative rewards.
    share : bool
        Whether a simulation of an action with a measurement is also a sample of the same action without one, and the other
        way round: both lead to the same state. Of several measurements each is a sample of all others, with outcomes drawn.
    nodes : int
        Largest number of histories in the tree, which bounds the memory.
    seed : int

    Attributes
    ----------
    deterministic : bool
        False: decisions depend on random numbers.
    value : float
        Mean simulated return of the last decision.
    reinvigorated : int
        Number of particles that were replaced so far, because the episode went on where theirs ended, or showed an outcome that
        is impossible in their state.
    deprivations : int
        Number of times that this happened to all particles. Where looks are exact they are then drawn uniformly from all states;
        elsewhere from the exact belief if that is affordable and the model does not rule it out, else uniformly from the states
        that can give the outcome.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.measuring_value(measuring_cost=0.05)
    >>> planner = am.planners.POMCP(model, simulations=5_000)
    >>> planner.start(am.Belief.at(0))
    >>> planner.decide()
    Decision(action=1, measurement=1)
    >>> planner.observe(1)
    >>> planner.decide()
    Decision(action=1, measurement=0)
    """

    deterministic = False

    def __init__(
        self,
        model: Model,
        simulations: int = 25_000,
        depth: int = 25,
        exploration: float | None = None,
        particles: int = 2_000,
        discount: float | None = None,
        rollout: str = "looking",
        clamp: bool = False,
        share: bool = True,
        nodes: int = 100_000,
        seed: int = 0,
    ) -> None:
        if not isinstance(model, Model):
            raise PlanError(f"the model is {quoted(model)}, expected a Model")
        if not isinstance(rollout, str) or rollout not in ROLLOUTS:
            raise PlanError(unknown_name("rollout", rollout, ROLLOUTS))
        self.model = model
        self.simulations = whole(simulations, "simulations", 1, MOST_SIMULATIONS, PlanError)
        self._parameters = pomcp.Parameters(
            discount=discount_factor(model.discount if discount is None else discount, "discount", PlanError),
            depth=whole(depth, "depth", 1, LARGEST_ARRAY, PlanError),
            exploration=_weight(exploration, model),
            rollout=ROLLOUTS[rollout],
            clamp=truth(clamp, "clamp", PlanError),
            share=truth(share, "share", PlanError),
            exact_look=model.is_exact_look_model,
        )
        if clamp and least_reward(model) < 0:
            raise PlanError(
                "clamp takes negative returns without a look for 0, but this model has negative rewards; use clamp=False"
            )
        discounted = model.replace(discount=min(self._parameters.discount, LARGEST_DISCOUNT))
        actions = _rollout_actions(discounted, rollout)
        self._particles = np.zeros(whole(particles, "particles", 1, LARGEST_ARRAY, PlanError), np.int64)
        self._measured = measured_world(model)
        #: None where looks are exact: particles are then known to be in one state, or only moved.
        self._filter: ParticleFilter | None = None
        if not model.is_exact_look_model:
            self._filter = ParticleFilter(model, self._measured, self._particles)
        self._rollout = pomcp.Rollout(actions, _looking_prices(model)[np.arange(model.n_states), actions])
        self._path = pomcp.make_path(self._parameters.depth)
        nodes = whole(nodes, "nodes", 2, LARGEST_ARRAY, PlanError)
        self._decisions = np.argwhere(model.allowed_decisions)  # (n, 2), ascending: a choice of the search is a row
        most_outcomes = max(model.n_outcomes(number) for number in range(1 + len(model.measurements)))
        self._choices = pomcp.Choices(
            actions=np.ascontiguousarray(self._decisions[:, 0]),
            measurements=np.ascontiguousarray(self._decisions[:, 1]),
            first=np.searchsorted(self._decisions[:, 0], np.arange(model.n_actions + 1)),
            n_observations=most_outcomes + 1,
        )
        self._tree, self._spare = (pomcp.make_tree(len(self._decisions), nodes) for _ in range(2))
        self._origin = np.zeros(nodes, np.int64)
        self._stream = streams.make_stream()
        self.reseed(whole(seed, "seed", error=PlanError))
        self.value = 0.0
        self.reinvigorated, self.deprivations = 0, 0
        self._last: Decision | None = None
        self._started = False

    def reseed(self, seed: int, episode: int = 0) -> None:
        """Use the random numbers of an episode from now on."""
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def start(self, belief: Belief) -> None:
        """Begin an episode: clear the tree, and draw the particles from a belief."""
        if belief.is_over or belief.states[-1] >= self.model.n_states or self.model.terminal[belief.states].any():
            raise PlanError("the belief is empty, or holds states in which an episode of the model does not run")
        pomcp.clear(self._tree)
        if self._filter is None:
            draw_particles(belief, self._particles, self._stream)
        else:
            self._filter.start(belief, self._stream)
        self._started, self._last = True, None

    #: The name of `start` before there were policies.
    begin = start

    def decide(self, belief: Belief | None = None) -> Decision:
        """Search, and return the decision with the highest mean: in the present belief, or in one that is started from."""
        if belief is not None:
            self.start(belief)
        if not self._started:
            raise PlanError("there is no belief to decide from; pass one: planner.decide(Belief.at(state))")
        pomcp.search(
            self._measured, self._tree, self._parameters, self._choices, self._particles, self.simulations, self._rollout,
            self._path, self._stream,
        )  # fmt: skip
        choice = int(pomcp.best_choice(self._tree, pomcp.ROOT, self._stream))
        self.value = float(self._tree.means[pomcp.ROOT, choice])
        action, measurement = self._decisions[choice].tolist()
        self._last = Decision(action, measurement)
        return self._last

    def observe(self, outcome: int | Decision | None, decision: Decision | int | None = None) -> None:
        """Update particles and tree with the outcome of a step, after which the episode still runs.

        Parameters
        ----------
        outcome : int or None
            The outcome's number within the measurement that was made, which is the state where that is exact; None for nothing
            seen.
        decision : Decision, optional
            The decision that was carried out, if it was not the one that `decide` returned last. The order
            `observe(decision, outcome)` is understood as well.
        """
        if isinstance(outcome, tuple):
            outcome, decision = cast("int | None", decision), outcome
        carried_out = self._last if decision is None else decision
        if not isinstance(carried_out, tuple):
            raise PlanError(
                f"the decision is {quoted(carried_out)}, expected a Decision; call decide() before observe(outcome), or pass the "
                "decision that was carried out: observe(outcome, decision)"
            )
        if self._filter is None:
            outcome = self._checked_state(outcome)
        else:
            outcome = self._checked_outcome(carried_out, outcome)
        self._update(carried_out, outcome)

    def _checked_state(self, state: int | None) -> int | None:
        """Return the state that an exact measurement showed; raise a `PlanError` if no episode runs in it."""
        if state is None:
            return None
        state = whole(state, "the outcome", 0, self.model.n_states - 1, PlanError, "None or a state")
        if self.model.terminal[state]:
            raise PlanError(
                f"{self.model.describe_state(state)} was shown and the episode goes on, but it ends there in the model "
                "that is planned on; plan on the model of the task"
            )
        return state

    def _checked_outcome(self, decision: Decision, outcome: int | None) -> int | None:
        """Return an outcome of the measurement of a decision; raise a `PlanError` if there is no such decision or outcome."""
        model = self.model
        if not is_valid(decision, model.n_actions, len(model.measurements)):
            expected = expected_decision(model.n_actions, len(model.measurements))
            raise PlanError(f"the decision is {quoted(decision)}, {expected}")
        action, measurement = decision
        if not model.allowed_decisions[action, measurement]:
            raise PlanError(
                f"the measurement {model.measurements[measurement - 1].name!r} cannot be made with action "
                f"{model.action_name(action)!r}; pass the decision that was carried out, with measurement 0 for none"
            )
        shows, n_outcomes = model.shown_by(measurement), model.n_outcomes(measurement)
        if shows is None:
            if outcome is not None:
                raise PlanError(
                    f"the outcome is {quoted(outcome)}, but without a measurement nothing is seen; pass None"
                )
            return None
        if outcome is None:
            raise PlanError(
                f"the outcome is None, but {shows.name!r} shows one of {n_outcomes}; pass its number, from 0 to {n_outcomes - 1}"
            )
        if shows.is_exact:
            return self._checked_state(outcome)
        return whole(outcome, f"the outcome of {shows.name!r}", 0, n_outcomes - 1, PlanError)

    def _update(self, decision: Decision, outcome: int | None) -> None:
        action, measurement = (int(part) for part in decision)
        if self._filter is not None:
            self._filter.update(action, measurement, outcome, self._stream)
            self.reinvigorated, self.deprivations = self._filter.reinvigorated, self._filter.deprivations
        elif outcome is not None:
            self._particles[:] = outcome
        else:
            replaced = pomcp.move_particles(self._measured.world, self._particles, action, self._stream)
            self.reinvigorated += int(replaced)
            self.deprivations += int(replaced == len(self._particles))
        choice = int(self._choices.first[action]) + int(self.model.allowed_decisions[action, :measurement].sum())
        edge = pomcp.edge_of(self._choices, choice, -1 if outcome is None else outcome)
        following = pomcp.find(self._tree, pomcp.ROOT, edge)
        if following == pomcp.NONE:
            pomcp.clear(self._tree)
        else:
            pomcp.keep_below(self._tree, following, self._spare, self._origin)
            self._tree, self._spare = self._spare, self._tree

    def q_values(self) -> Any:
        """Return the mean simulated return of each action and measurement, float64 (A, 1 + k); nan where never tried."""
        values = np.full((self.model.n_actions, 1 + len(self.model.measurements)), np.nan)
        actions, measurements = self._decisions.T
        values[actions, measurements] = np.where(self._tree.tries[pomcp.ROOT] > 0, self._tree.means[pomcp.ROOT], np.nan)
        return values

    def belief(self) -> Belief:
        """Return the distribution of the particles."""
        return Belief.from_distribution(np.bincount(self._particles, minlength=self.model.n_states))

    @property
    def made_up(self) -> int:
        """The former name of `reinvigorated`."""
        return self.reinvigorated

    @property
    def lost(self) -> int:
        """The former name of `deprivations`."""
        return self.deprivations

    @property
    def depth(self) -> int:
        """Number of steps of a simulation."""
        return self._parameters.depth

    @property
    def histories(self) -> int:
        """Number of histories in the tree."""
        return int(self._tree.used[0])

    @property
    def memory(self) -> int:
        """Bytes of the two trees, the one in use and the one that its kept part is copied to; constant."""
        return sum(array.nbytes for tree in (self._tree, self._spare) for array in tree)


def _weight(exploration: Any, model: Model) -> float:
    """Return the weight of the confidence bound; of None one in proportion to the range of Q values, or the largest price.

    Where looks are exact it is that of Q values alone, as in the runs that are published here.
    """
    if exploration is not None:
        return amount(exploration, "exploration", error=PlanError)
    values = q_mdp(model.replace(discount=min(model.discount, LARGEST_DISCOUNT)))[~model.terminal]
    weight = EXPLORATION_FRACTION * (float(np.ptp(values)) or 1.0)
    prices = [] if model.is_exact_look_model else [float(np.max(one.cost)) for one in model.measurements]
    return max([weight, *prices])


def _rollout_actions(model: Model, rollout: str) -> npt.NDArray[np.int64]:
    """Return the action of each state in rollouts, shape (S,); zeros, which are not used, where actions are random."""
    if rollout == "q-mdp":
        return np.asarray(q_mdp(model).argmax(axis=1))
    if rollout == "looking":
        charged = np.where(model.terminal[:, None], 0.0, model.rewards - _looking_prices(model))
        return np.asarray(q_mdp(replace(model, rewards=charged, transition_rewards=None)).argmax(axis=1))
    return np.zeros(model.n_states, np.int64)


def _looking_prices(model: Model) -> FloatArray:
    """Return the price of looking with each action, shape (S, A), for rollouts that look at every step.

    It is that of the cheapest exact measurement that is allowed with the action, or else of the cheapest one; 0 where none is
    allowed, and where the state is seen without a measurement.
    """
    if model.is_exact_look_model:
        return model.measuring_costs
    if model.passive is not None and model.passive.is_exact:
        return np.zeros((model.n_states, model.n_actions))
    exact, cheapest = np.full((2, model.n_states, model.n_actions), np.inf)
    for number, measurement in enumerate(model.measurements, start=1):
        table = measurement.table(model.n_states, model.n_actions)
        allowed = np.where(model.allowed_decisions[:, number], table, np.inf)
        cheapest = np.minimum(cheapest, allowed)
        if measurement.is_exact:
            exact = np.minimum(exact, allowed)
    prices = np.where(np.isfinite(exact), exact, cheapest)
    return np.where(np.isfinite(prices), prices, 0.0)


def least_reward(model: Model) -> float:
    """Return the smallest reward of a single step, 0 if all are positive."""
    return float((model.rewards if model.transition_rewards is None else model.transition_rewards).min(initial=0.0))


def draw_particles(belief: Belief, particles: npt.NDArray[np.int64], stream: Any) -> None:
    """Fill particles, shape (n,), with states drawn from a belief."""
    uniform = np.empty(len(particles))
    streams.draw(uniform, stream)
    drawn = np.searchsorted(np.cumsum(belief.probabilities), uniform, side="right")
    particles[:] = belief.states[np.minimum(drawn, len(belief.states) - 1)]


class ParticleFilter:
    """Particles of the present belief, which follow decisions and outcomes.

    Where an outcome leaves too few of them they are drawn from the exact belief, if that is affordable and the model does not
    rule the outcome out. Otherwise those that are left are kept; if none is, states that can give the outcome are drawn
    uniformly.

    Parameters
    ----------
    model : Model
    measured : MeasuredWorld
        Arrays of the model.
    particles : int64 array, shape (n,)
        Changed in place.

    Attributes
    ----------
    reinvigorated : int
        Number of particles so far that were replaced because they disagreed with what happened, or were too few.
    deprivations : int
        Number of times that no particle was left.
    """

    def __init__(self, model: Model, measured: MeasuredWorld, particles: npt.NDArray[np.int64]) -> None:
        self.model, self.measured, self.particles = model, measured, particles
        self._moved, self._weights = np.zeros_like(particles), np.zeros(len(particles))
        self._exact: Belief | None = None  # before the steps in `_since`; None where it is not known
        self._since: list[tuple[int, int, int | None]] = []
        self.reinvigorated, self.deprivations = 0, 0

    def start(self, belief: Belief, stream: Any) -> None:
        """Draw the particles from a belief."""
        draw_particles(belief, self.particles, stream)
        self._exact, self._since = belief, []

    def update(self, action: int, measurement: int, outcome: int | None, stream: Any) -> None:
        """Condition the particles on a decision and its outcome, after which the episode still runs."""
        shows = self.model.shown_by(measurement)
        if shows is not None and shows.law is None and outcome is not None:
            self.particles[:] = outcome
            self._exact, self._since = Belief.at(outcome), []
            return
        self._remember(action, measurement, outcome)
        rejected, effective = pomcp.update_particles(
            self.measured, self.particles, self._moved, self._weights, action, measurement,
            -1 if outcome is None else outcome, stream,
        )  # fmt: skip
        self.reinvigorated += int(rejected)
        if effective >= LEAST_EFFECTIVE * len(self.particles):
            return
        redrawn_from = self._exact_belief()
        if effective == 0:
            if redrawn_from is None:
                redrawn_from = self._consistent_states(action, measurement, outcome)
            self.deprivations += 1
        if redrawn_from is not None:
            draw_particles(redrawn_from, self.particles, stream)
            self.reinvigorated += len(self.particles) - int(rejected)
            self._exact, self._since = redrawn_from, []

    def _remember(self, action: int, measurement: int, outcome: int | None) -> None:
        """Note a step from which the exact belief can be computed later, as long as that is affordable."""
        self._since.append((action, measurement, outcome))
        if self._exact is None or len(self._since) * len(self.model.transitions.successors) > MOST_EXACT_WORK:
            self._exact, self._since = None, []

    def _exact_belief(self) -> Belief | None:
        """Return the belief by Bayes' rule, None where it is not affordable or the model rules out what happened."""
        belief = self._exact
        try:
            for action, measurement, outcome in self._since:
                belief = None if belief is None else belief.update(self.model, action, measurement, outcome)
        except ModelError:
            return None
        return None if belief is None or belief.is_over else belief

    def _consistent_states(self, action: int, measurement: int, outcome: int | None) -> Belief:
        """Return the uniform belief over the running states in which an outcome is possible."""
        laws, seen = self.measured.outcomes, -1 if outcome is None else outcome
        possible = np.array(
            [
                not ended and outcome_probability(laws, measurement, action, state, seen) > 0
                for state, ended in enumerate(self.model.terminal.tolist())
            ]
        )
        if not possible.any():
            name = "nothing" if outcome is None else repr(self.model.outcome_name(measurement, outcome))
            raise PlanError(
                f"{name} was seen and the episode goes on, but no state in which it runs can give that after action "
                f"{self.model.action_name(action)!r}; check the outcome, or plan on the model of the task"
            )
        return Belief.from_distribution(possible)


@dataclass(frozen=True)
class SimulatedReturn:
    """Return, measurements and steps of a planner: means over simulated episodes with their 95 % intervals.

    Attributes
    ----------
    discounted_return, scalarized_return : Interval
        Reward minus measuring cost, with the model's discount and without one.
    measurements, steps : Interval
    episodes : int
        Number of episodes that were finished.
    seconds : float
    stopped : str
        `done`, `time` or `interrupted`.
    deprivations : int
        Number of times that all particles of a belief had ended, as `POMCP.deprivations`.
    """

    discounted_return: Interval
    scalarized_return: Interval
    measurements: Interval
    steps: Interval
    episodes: int
    seconds: float
    stopped: str
    deprivations: int

    @property
    def lost(self) -> int:
        """The former name of `deprivations`."""
        return self.deprivations

    def __str__(self) -> str:
        lines = name_value_lines([
            ("discounted return", interval_text(self.discounted_return)), ("return", interval_text(self.scalarized_return)),
            ("looks", interval_text(self.measurements)), ("steps", interval_text(self.steps)),
            ("episodes", f"{self.episodes} in {self.seconds:.1f} s; the intervals cover 95 %"),
        ])  # fmt: skip
        if self.deprivations:
            lines.append(
                f"All particles of a belief had ended {self.deprivations} times and were drawn anew; use more particles."
            )
        if self.stopped != "done":
            reason = "the time limit was reached" if self.stopped == "time" else "it was interrupted"
            lines.append(f"There are fewer episodes than asked for, as {reason}.")
        return "\n".join(lines)


def simulate(
    planner: POMCP,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int = 200,
    time_limit: float | None = None,
    progress: Callable[[int, Interval], None] | None = None,
) -> SimulatedReturn:
    """Estimate the return of a planner by simulated episodes on the model it plans on.

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
        Called after every episode with the number of episodes and the mean discounted return so far.

    Returns
    -------
    SimulatedReturn
        Over fewer episodes than asked for, if the time limit was reached or Ctrl-C was pressed.

    Examples
    --------
    >>> import actmeasure as am
    >>> planner = am.planners.POMCP(am.problems.measuring_value(), simulations=500)
    >>> am.planners.simulate(planner, episodes=20).episodes
    20
    """
    if not isinstance(planner, POMCP):
        raise PlanError(f"the planner is {quoted(planner)}, expected a POMCP")
    count, seed = whole(episodes, "episodes", 1, MOST_EPISODES, PlanError), whole(seed, "seed", error=PlanError)
    max_steps = whole(max_steps, "max_steps", 1, MOST_STEPS, PlanError)
    budget = Budget.of(time_limit)
    arrays, entropy, stream = measured_world(planner.model), streams.entropy_words(seed), streams.make_stream()
    results, before, stopped = np.zeros((count, 4)), planner.deprivations, None
    with budget.deferred_interrupts():
        for episode in range(count):
            planner.reseed(seed, episode)
            streams.seed_stream(stream, entropy, episode, streams.WORLD)
            results[episode] = _one_episode(planner, arrays, stream, max_steps)
            if progress is not None:
                progress(episode + 1, statistics.mean(results[: episode + 1, 0]))
            stopped = budget.stops()
            if stopped is not None:
                break
    done = results[: episode + 1]
    stopped = "done" if len(done) == count or stopped is None else stopped
    discounted, total, looks, steps = (statistics.mean(done[:, column]) for column in range(4))
    deprivations = planner.deprivations - before
    return SimulatedReturn(discounted, total, looks, steps, len(done), budget.elapsed, stopped, deprivations)


def _one_episode(
    planner: POMCP, measured: MeasuredWorld, stream: FloatArray, max_steps: int
) -> tuple[float, float, int, int]:
    """Return the discounted and undiscounted return, measurements and steps of an episode."""
    model = planner.model
    state = int(first_state(measured.world, stream))
    planner.start(Belief.at(state) if model.reveal_start else Belief.start(model))
    discounted, total, looks, factor = 0.0, 0.0, 0, 1.0
    for step in range(1, max_steps + 1):
        state, reward, cost, made, outcome, ended = measured_step(measured, state, *planner.decide(), stream)
        discounted += factor * (reward - cost)
        total, looks, factor = total + reward - cost, looks + (made > 0), factor * model.discount
        if ended:
            return discounted, total, looks, step
        planner.observe(None if outcome < 0 else int(outcome))
    return discounted, total, looks, max_steps
