"""Training the same agent with several seeds, in this process or in several."""

from __future__ import annotations

import io
import math
import pickle
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import cloudpickle
import gymnasium
import numpy as np

from actmeasure import learning
from actmeasure.envs.registration import register_environments
from actmeasure.envs.wrapper import ActiveMeasuring
from actmeasure.episodes import Episodes
from actmeasure.errors import ActMeasureError, AgentError, SpaceError, quoted
from actmeasure.files import npz
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels.jit import running_time
from actmeasure.learning.agent import Agent
from actmeasure.learning.learning_agent import own_discount
from actmeasure.learning.train import DISCOUNT, check_can_act, task_of, train
from actmeasure.model import Model
from actmeasure.settings import LARGEST_INTEGER, MOST_EPISODES, whole
from actmeasure.studies.pool import Call, Work, available_cores, error_sentence, run_calls
from actmeasure.studies.seed_runs import LAST, SeedRuns, Stopped
from actmeasure.studies.trial import World

__all__ = ["AgentMaker", "FinishedEpisodes", "SeedProgress", "Training", "train_agent", "train_seeds"]

#: Seconds that it takes to start worker processes: they are not used to save less than that.
STARTING_SECONDS = 3.0
#: Seconds that a run is tried in this process before it is known how long it is going to take.
TRIAL_SECONDS = 1.0
#: Most seeds. All seeds together have at most `MOST_EPISODES` episodes: the results of more fit into no memory.
MOST_SEEDS = 10**6
#: Least number of seconds between two deliveries of finished episodes.
DELIVERY_SECONDS = 0.1


@dataclass(frozen=True)
class SeedProgress:
    """Progress of a training with several seeds.

    Attributes
    ----------
    done, total : int
        Episodes of all seeds.
    recent_return : float
        Mean of the last 50 episodes' returns over the seeds that are being trained; NaN before the first.
    stopping : bool
        Whether Ctrl-C was pressed, so that every seed ends after the episodes that it is at.
    """

    done: int
    total: int
    recent_return: float
    stopping: bool = False


AgentMaker = str | Callable[..., Agent]
Progress = Callable[[SeedProgress], None]


def train_seeds(
    agent: AgentMaker,
    model: Model | gymnasium.Env[Any, Any] | str | Callable[[], gymnasium.Env[Any, Any]],
    episodes: int,
    seeds: int | Iterable[int] = 5,
    max_steps: int = 1000,
    settings: Mapping[str, Any] | None = None,
    planned_episodes: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    *,
    measuring_cost: float | None = None,
    discount: float = DISCOUNT,
) -> SeedRuns:
    """Train an agent several times, with different seeds, on all cores that this process may use.

    Every seed gives the episodes that `train` gives with a new agent, whatever the number of workers.

    Parameters
    ----------
    agent : str, or function that makes a new agent
        A name as for `actmeasure.learning.make`. A function is called once for every seed.
    model : Model; or environment in which looking costs, its Gymnasium id, or a function that makes it
        Worker processes make an environment anew, from its `spec`, or are sent a copy of it.
    episodes : int
        For each seed.
    seeds : int, or ints
        How many (0, 1, 2, ...), or which.
    max_steps : int
        An episode is cut off after this many steps.
    settings : mapping, optional
        Settings that the agent is made with.
    planned_episodes : int, optional
        How many episodes the agent is told to expect; `episodes` by default.
    workers : int, optional
        How many processes to use; 1 for this one alone. By default a short run stays here and a long one uses all cores.
    progress : function, optional
        Called now and then with a `SeedProgress`.
    measuring_cost : float, optional
        Price of a look in an environment that has none yet; it is then wrapped with `ActiveMeasuring`.
    discount : float
        Discount of the task on an environment; a model has its own.

    Returns
    -------
    SeedRuns
        With fewer episodes than asked for, and a warning, if interrupted by Ctrl-C or if a worker could not go on.

    Examples
    --------
    >>> import actmeasure as am
    >>> runs = am.train_seeds("random", am.problems.measuring_value(), episodes=100, seeds=3)
    >>> runs.summary()["steps"].mean > 1
    True
    """
    count = whole(episodes, "episodes", 1, error=AgentError)
    training = Training(agent, dict(settings or {}), count, _steps(max_steps), _planned(planned_episodes), discount)
    chosen = _checked_seeds(seeds, training.episodes)
    processes = None if workers is None else whole(workers, "workers", 1, error=AgentError)
    source = WorldSource(model, measuring_cost)
    world = source.make()
    task_of(world, count, own_discount(discount, "discount"))  # so that a mistake is known before anything begins
    check_can_act(training.new_agent(), world)
    finished = FinishedEpisodes(chosen, training.episodes, progress)
    return _train(training, source, finished, processes, training.new_agent)


def train_agent(
    agent: Agent,
    model: Model,
    episodes: int,
    seed: int = 0,
    max_steps: int = 1000,
    planned_episodes: int | None = None,
    progress: Progress | None = None,
) -> SeedRuns:
    """Train one agent, which may have been trained before, as `train` does, with results as those of several seeds.

    See `train` for the parameters.
    """
    agent.check_can_act_on(_checked_model(model))
    count = whole(episodes, "episodes", 1, error=AgentError)
    name = getattr(agent, "name", type(agent).__name__)
    training = Training(name, {}, count, _steps(max_steps), _planned(planned_episodes))
    finished = FinishedEpisodes(_checked_seeds([seed], count), count, progress)
    return _train(training, WorldSource(model), finished, 1, lambda: agent, agent.episodes_done)


def _steps(max_steps: int) -> int:
    return whole(max_steps, "max_steps", 1, LARGEST_INTEGER, AgentError)


def _planned(episodes: int | None) -> int | None:
    return None if episodes is None else whole(episodes, "planned_episodes", 1, LARGEST_INTEGER, AgentError)


def _checked_model(model: Any) -> Model:
    if not isinstance(model, Model):
        raise SpaceError(f"the world is of type {type(model).__name__}, expected a Model; use train for environments")
    return model


class WorldSource:
    """Where the model or environment of a training comes from, also in another process.

    Parameters
    ----------
    given : Model, environment, id or function
        As for `train_seeds`.
    measuring_cost : float, optional
        Price of a look in an environment that has none.
    """

    def __init__(self, given: Any, measuring_cost: float | None = None) -> None:
        self._given, self._cost = given, measuring_cost
        if isinstance(given, Model) and measuring_cost is not None:
            raise SpaceError("a model has a measuring cost of its own; use model.replace(measuring_cost=...)")

    def make(self) -> World:
        """Return the model or environment in this process."""
        given = self._given
        if isinstance(given, str):
            register_environments()
            try:
                given = gymnasium.make(given)
            except (gymnasium.error.Error, ImportError) as error:
                raise SpaceError(
                    f"gymnasium.make cannot make {given!r}: {error}; expected a Model (actmeasure.problems.make makes one by "
                    "name), an environment or its id"
                ) from error
        elif callable(given) and not isinstance(given, (Model, gymnasium.Env)):
            given = given()
        if not isinstance(given, (Model, gymnasium.Env)):
            single = "; give its id or one of its environments: seeds are trained in processes of their own"
            raise SpaceError(
                f"the world is of type {type(given).__name__}, expected a Model, a Gymnasium environment, its id, or a function "
                f"that makes it{single if isinstance(given, gymnasium.vector.VectorEnv) else ''}"
            )
        if isinstance(given, gymnasium.Env) and self._cost is not None:
            return ActiveMeasuring(given, measuring_cost=self._cost)
        if isinstance(given, gymnasium.Env) and not given.has_wrapper_attr("measuring_cost"):
            raise SpaceError("looking costs nothing in this environment; give the price of a look: measuring_cost=0.01")
        return given

    def packed(self) -> bytes:
        """Return bytes of which `unpacked_world` makes the same in another process."""
        if isinstance(self._given, Model):
            # Not pickled: the arrays would then be writable, and kernels are compiled once more for such arrays.
            file = io.BytesIO()
            npz.write(self._given, file)
            return MODEL + file.getvalue()
        given = self._given
        spec = given.spec if isinstance(given, gymnasium.Env) else None
        source = given if spec is None else partial(gymnasium.make, spec)
        packed: bytes = cloudpickle.dumps((source, self._cost))
        return packed


#: Beginning of the bytes of a model.
MODEL = b"model "


def unpacked_world(packed: bytes) -> World:
    """Return the world that `WorldSource.packed` has packed."""
    if packed.startswith(MODEL):
        return npz.read(packed.removeprefix(MODEL))
    return WorldSource(*pickle.loads(packed)).make()


def _checked_seeds(seeds: int | Iterable[int], episodes: int) -> tuple[int, ...]:
    given = seeds if isinstance(seeds, Iterable) else range(whole(seeds, "seeds", 1, error=AgentError))
    chosen = tuple(whole(seed, "a seed", 0, LARGEST_INTEGER, AgentError) for seed in islice(given, MOST_SEEDS + 1))
    if not chosen:
        raise AgentError("there are no seeds; give at least one, such as range(5)")
    if len(chosen) > MOST_SEEDS or len(chosen) * episodes > MOST_EPISODES:
        raise AgentError(
            f"there are more than {MOST_SEEDS:,} seeds or {MOST_EPISODES:,} episodes in all, whose results fit into no memory; "
            "give fewer seeds or episodes"
        )
    if len(set(chosen)) < len(chosen):
        raise AgentError("a seed is given twice, which would count its episodes twice; give each once")
    return chosen


@dataclass(frozen=True)
class Training:
    """What is trained and for how long: the same for all seeds, apart from the model."""

    agent: AgentMaker
    settings: Mapping[str, Any]
    episodes: int
    max_steps: int
    planned_episodes: int | None = None
    discount: float = DISCOUNT

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self.agent if isinstance(self.agent, str) else getattr(self.agent, "__name__", repr(self.agent))

    def new_agent(self) -> Agent:
        """Return a fresh agent, which has learned nothing yet."""
        if isinstance(self.agent, str):
            return learning.make(self.agent, **self.settings)
        made = self.agent(**self.settings) if callable(self.agent) else None
        if not isinstance(made, Agent) or made.task is not None:
            raise AgentError(
                f"the agent is {quoted(self.agent)}, expected a name (see actmeasure.learning.AGENTS) or a function that makes "
                "a new agent at every call"
            )
        return made

    def run(
        self,
        agent: Agent,
        world: World,
        seed: int,
        deliver: Callable[[Episodes], None],
        stops: Callable[[], bool],
        done: int = 0,
    ) -> None:
        """Train an agent that has `done` of its episodes behind it, until all are done, `stops()` after a delivery, or Ctrl-C.

        Finished episodes are passed to `deliver` as they come, every `DELIVERY_SECONDS` at most.
        """
        left, delivered, last = self.episodes - done, 0, time.perf_counter()

        def progress(count: int, so_far: Episodes) -> None:
            nonlocal delivered, last
            if count < left and time.perf_counter() - last < DELIVERY_SECONDS:
                return
            deliver(so_far.part(delivered, count))
            delivered, last = count, time.perf_counter()
            if count < left and stops():
                raise KeyboardInterrupt  # upon which `train` returns what is done

        planned = self.episodes if self.planned_episodes is None else self.planned_episodes
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "interrupted after", RuntimeWarning)  # the caller says so
            results = train(agent, world, left, seed, self.max_steps, self.discount, planned, progress)
        if len(results) > delivered:
            deliver(results.part(delivered, len(results)))


class FinishedEpisodes:
    """Collects finished episodes of several seeds, in whatever order they arrive."""

    def __init__(self, seeds: Sequence[int], episodes: int, progress: Progress | None = None) -> None:
        self.seeds, self.episodes = seeds, episodes
        self._progress = progress
        self._results: dict[int, Episodes] = {}
        self._entered = [0] * len(seeds)
        self._done = [0] * len(seeds)
        #: Whether what is still running was told to stop.
        self.stopping = False

    def add(self, number: int, part: Episodes) -> None:
        """Enter the next finished episodes of seed `number`, counted from 0."""
        n_measurements = part.looks.shape[1]
        results = self._results.setdefault(number, Episodes.empty(self.episodes, n_measurements))
        begin, end = self._entered[number], self._entered[number] + len(part)
        results.fill(begin, part)
        self._entered[number] = end
        self._done[number] = max(self._done[number], end)

    def restart(self, number: int) -> None:
        """Begin a seed again: the same episodes are going to be entered, so that those that are there can stay."""
        self._entered[number] = 0

    def entered(self, number: int) -> int:
        """Return how many episodes of seed `number` were entered since it was last begun."""
        return self._entered[number]

    @property
    def done(self) -> int:
        """Finished episodes of all seeds."""
        return sum(self._done)

    @property
    def total(self) -> int:
        """All episodes that were asked for."""
        return len(self.seeds) * self.episodes

    @property
    def unfinished(self) -> list[int]:
        """Numbers of the seeds that have episodes left."""
        return [number for number, done in enumerate(self._done) if done < self.episodes]

    def show(self) -> None:
        """Report progress."""
        if self._progress is not None:
            # Of a seed that begins again what is done anew counts, or the time left would seem to grow.
            entered = sum(self._entered)
            self._progress(SeedProgress(entered, self.total, self._recent_return(), self.stopping))

    def _recent_return(self) -> float:
        begun = [number for number, done in enumerate(self._done) if done]
        running = [number for number in begun if self._done[number] < self.episodes]
        recent = [
            self._results[number].part(max(0, self._done[number] - LAST), self._done[number])
            for number in running or begun
        ]
        return float(np.mean([one.scalarized_return.mean() for one in recent])) if recent else math.nan

    def runs(self, agent: str, first_episode: int, stopped: Stopped, reason: str) -> SeedRuns:
        """Return everything that is finished; `reason` says why that is not all."""
        kept = [number for number, done in enumerate(self._done) if done]
        return SeedRuns(
            agent=agent,
            seeds=tuple(self.seeds[number] for number in kept),
            episodes=tuple(self._results[number].first(self._done[number]) for number in kept),
            first_episode=first_episode,
            stopped=stopped,
            note="" if stopped == "done" else f"{reason}: {self._left()}",
        )

    def _left(self) -> str:
        if len(self.seeds) == 1:
            return f"{self.done:,} of {self.episodes:,} episodes are done, and kept."
        complete = len(self.seeds) - len(self.unfinished)
        begun = sum(0 < done < self.episodes for done in self._done)
        parts = f"; of {begun} more what they had finished is kept" if begun else ""
        return f"{complete} of {len(self.seeds)} seeds are complete{parts}."


def _train(
    training: Training,
    source: WorldSource,
    finished: FinishedEpisodes,
    workers: int | None,
    new_agent: Callable[[], Agent],
    first_episode: int = 0,
) -> SeedRuns:
    cores = workers
    if cores is None:
        cores = 1 if _why_unsendable(training, source) else available_cores()
    several = min(cores, len(finished.seeds)) > 1
    failure: str | None = None
    with deferred_interrupts() as interrupts:
        if not several or workers is None:
            failure = _train_here(training, source.make(), finished, interrupts, new_agent, may_hand_over=several)
        if several and failure is None and not interrupts.requested and finished.unfinished:
            failure = _train_in_workers(training, source, finished, cores, interrupts)
    return _outcome(training, finished, failure, first_episode)


def _outcome(training: Training, finished: FinishedEpisodes, failure: str | None, first_episode: int) -> SeedRuns:
    """Return all that is finished, with a warning if that is not everything; raise an error if it is nothing."""
    if not finished.unfinished:
        return finished.runs(training.name, first_episode, "done", "")
    if not finished.done:
        if failure is not None:
            raise AgentError(failure)
        raise KeyboardInterrupt
    if failure is None:
        runs = finished.runs(training.name, first_episode, "interrupted", "Stopped with Ctrl-C")
    else:
        runs = finished.runs(training.name, first_episode, "failed", failure[0].upper() + failure[1:])
    warnings.warn(runs.note, RuntimeWarning, stacklevel=4)
    return runs


def _train_here(
    training: Training,
    world: World,
    finished: FinishedEpisodes,
    interrupts: Interrupts,
    new_agent: Callable[[], Agent],
    may_hand_over: bool,
) -> str | None:
    """Train one seed after the other in this process; stop early where worker processes can take over and are faster.

    Returns
    -------
    str or None
        Why training failed, if it did.
    """
    pace = _Pace(finished) if may_hand_over else None
    for number, seed in enumerate(finished.seeds):
        begun = running_time()

        def deliver(part: Episodes, number: int = number) -> None:
            finished.add(number, part)
            finished.show()
            if pace is not None:
                pace.note()

        def stops(begun: float = begun) -> bool:
            return pace is not None and pace.is_too_slow(running_time() - begun)

        try:
            training.run(new_agent(), world, seed, deliver, stops)
        except (ActMeasureError, MemoryError) as error:
            if not finished.done:
                raise
            return f"seed {seed} failed: {error}"
        if interrupts.requested or (pace is not None and pace.is_too_slow(0.0)):
            break
    return None


class _Pace:
    """Measures how fast seeds are trained in this process, to tell whether worker processes would be done sooner."""

    def __init__(self, finished: FinishedEpisodes) -> None:
        self._finished = finished
        self._begun: float | None = None
        self._first = 0

    def note(self) -> None:
        """Record that episodes were entered; time counts from the first ones on."""
        if self._begun is None:
            self._begun, self._first = running_time(), self._finished.done

    def is_too_slow(self, lost: float) -> bool:
        """Return whether to hand over, though `lost` seconds of the seed that is being trained are then spent again."""
        if self._begun is None:
            return False
        seconds = running_time() - self._begun
        done, left = self._finished.done - self._first, self._finished.total - self._finished.done
        return seconds > TRIAL_SECONDS and seconds * left > (STARTING_SECONDS + 2 * lost) * done


def _train_in_workers(
    training: Training, source: WorldSource, finished: FinishedEpisodes, workers: int, interrupts: Interrupts
) -> str | None:
    """Train the seeds that are not finished in worker processes, each of which trains one seed after the other.

    A worker trains for a moment at every call, returns the episodes that are done, and keeps the agent for the next call. So
    Ctrl-C ends training after the calls that are running; a second one ends it at once, with what was delivered before.

    Returns
    -------
    str or None
        Why training failed, if it did.
    """
    seeds = _Seeds(finished, interrupts, Call(None, _set_up, _packed(training, source)))
    with suppress(KeyboardInterrupt):  # Ctrl-C was pressed twice
        for _ in run_calls(seeds, min(workers, len(seeds.waiting))):
            finished.stopping |= interrupts.requested
            finished.show()
    return seeds.failure


class _Seeds(Work):
    """Seeds that wait for a worker; a worker that dies or fails ends training after the calls that are running."""

    def __init__(self, finished: FinishedEpisodes, interrupts: Interrupts, setup: Call) -> None:
        super().__init__(finished.unfinished)
        self._finished, self._interrupts, self.setup = finished, interrupts, setup
        self.failure: str | None = None
        for number in self.waiting:
            finished.restart(number)

    @property
    def has_next(self) -> bool:
        """See `Work.has_next`."""
        return super().has_next and not self._finished.stopping

    def next_call(self, task: int | None) -> Call | None:
        """Return a call that goes on with the worker's seed (`task`, its number), or begins with the next."""
        finished = self._finished
        finished.stopping |= self._interrupts.requested
        if finished.stopping:
            return None
        if task is None or finished.entered(task) == finished.episodes:
            task = self.waiting.popleft() if self.waiting else None
        return None if task is None else Call(task, _train_part, (finished.seeds[task], finished.entered(task)))

    def finished(self, task: int | None, result: Any) -> None:
        """Enter the episodes of a call; the result of `setup` is only why it failed, "" if it did not."""
        if task is None:
            self._fail(result)
            return
        part, failure = result
        self._finished.add(task, part)
        self._fail(failure and f"seed {self._finished.seeds[task]} failed: {failure}")

    def lost(self, task: int | None, why: str) -> bool:
        """See `Work.lost`."""
        self._fail(why)
        return False

    def _fail(self, failure: str) -> None:
        if failure:
            self.failure = self.failure or failure
            self._finished.stopping = True


def _why_unsendable(training: Training, source: WorldSource) -> str | None:
    """Return why the agent or the environment cannot be made in another process, None if they can."""
    try:
        cloudpickle.dumps(training)
        source.packed()
    except Exception as error:  # whatever the agent's class or settings raise, or the environment
        return str(error)
    return None


def _packed(training: Training, source: WorldSource) -> tuple[bytes, bytes]:
    if reason := _why_unsendable(training, source):
        raise AgentError(
            f"the agent {training.name!r}, its settings or its environment cannot be sent to worker processes ({reason}); leave "
            "out what cannot be pickled, or pass workers=1"
        )
    packed: bytes = cloudpickle.dumps(training)
    return packed, source.packed()


class _InWorker:
    """What a worker process holds between two calls: the training, the world, and the agent of the present seed."""

    training: Training
    world: World
    agent: Agent


def _set_up(packed: bytes, contents: bytes) -> str:
    """Prepare this worker process; returns why it cannot be, if so."""
    try:
        _InWorker.training, _InWorker.world = pickle.loads(packed), unpacked_world(contents)
    except Exception as error:
        return _failure(error)
    return ""


def _train_part(seed: int, done: int) -> tuple[Episodes, str]:
    """Train a seed in this worker process for a moment, from episode `done` on.

    Returns
    -------
    Episodes
        The episodes that were finished.
    str
        Why training cannot go on, if so.
    """
    training, parts = _InWorker.training, [Episodes.empty(0)]
    try:
        if done == 0:
            _InWorker.agent = training.new_agent()
        training.run(_InWorker.agent, _InWorker.world, seed, parts.append, lambda: True, done)
    except Exception as error:
        return parts[-1], _failure(error)
    return parts[-1], ""


def _failure(error: Exception) -> str:
    said = error_sentence(error)
    return said if isinstance(error, (ActMeasureError, MemoryError)) else f"{said}; pass workers=1 to see where"
