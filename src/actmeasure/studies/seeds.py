"""Training with several seeds, in this process or in several."""

from __future__ import annotations

import io
import math
import pickle
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from actmeasure import learning
from actmeasure.episodes import Episodes
from actmeasure.errors import ActMeasureError, AgentError, SpaceError, quoted
from actmeasure.files import npz
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels.jit import running_time
from actmeasure.learning.agent import Agent
from actmeasure.learning.train import train
from actmeasure.model import Model
from actmeasure.settings import whole
from actmeasure.studies.processes import WorkerProcess, available_cores, check_may_start
from actmeasure.studies.seed_runs import LAST, SeedRuns, Stopped

__all__ = [
    "AgentMaker",
    "Job",
    "Ledger",
    "SeedProgress",
    "run_seed",
    "train_agent",
    "train_in_processes",
    "train_seeds",
    "why_unsendable",
]

# ----------------------------------------------------------------------------------------------------
# What is finished so far, seed by seed.
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeedProgress:
    """How far training is.

    Attributes
    ----------
    done, total : int
        Episodes of all seeds.
    recent_return : float
        Mean of the last 50 episodes' returns over the seeds that are being trained; not a number before the first.
    stopping : bool
        Whether Ctrl-C was pressed, so that seeds only finish what they cannot leave half done.
    """

    done: int
    total: int
    recent_return: float
    stopping: bool = False


class Ledger:
    """Collects finished episodes, in whatever order the seeds deliver them."""

    def __init__(
        self, seeds: Sequence[int], episodes: int, progress: Callable[[SeedProgress], None] | None = None
    ) -> None:
        self.seeds, self.episodes = seeds, episodes
        self._progress = progress
        self._results: dict[int, Episodes] = {}
        self._entered = [0] * len(seeds)
        self._done = [0] * len(seeds)
        #: Whether what is still running was told to stop.
        self.stopping = False

    def add(self, number: int, part: Episodes) -> None:
        """Enter the next finished episodes of seed `number`, counted from 0."""
        results = self._results.setdefault(number, Episodes.empty(self.episodes))
        begin, end = self._entered[number], self._entered[number] + len(part)
        for field in fields(Episodes):
            getattr(results, field.name)[begin:end] = getattr(part, field.name)
        self._entered[number] = end
        self._done[number] = max(self._done[number], end)

    def restart(self, number: int) -> None:
        """A seed begins again: the same episodes are going to be entered, so that those that are there can stay."""
        self._entered[number] = 0

    @property
    def done(self) -> int:
        """Finished episodes of all seeds."""
        return sum(self._done)

    @property
    def total(self) -> int:
        """All episodes there are going to be."""
        return len(self.seeds) * self.episodes

    @property
    def unfinished(self) -> list[int]:
        """Numbers of the seeds that have episodes left."""
        return [number for number, done in enumerate(self._done) if done < self.episodes]

    def show(self) -> None:
        """Tell how far it is."""
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
        """Everything that is finished; `reason` says why that is not all."""
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


# ----------------------------------------------------------------------------------------------------
# One seed's training: what every process does, the only one as well as each of several.
# ----------------------------------------------------------------------------------------------------


#: Finished episodes are delivered at most this often, in seconds.
DELIVERY_SECONDS = 0.1

AgentMaker = str | Callable[..., Agent]


@dataclass(frozen=True)
class Job:
    """What is the same for all seeds, apart from the model."""

    agent: AgentMaker
    settings: Mapping[str, Any]
    episodes: int
    max_steps: int
    planned_episodes: int | None = None

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self.agent if isinstance(self.agent, str) else getattr(self.agent, "__name__", repr(self.agent))

    def new_agent(self) -> Agent:
        """A fresh agent, which has learned nothing yet."""
        if isinstance(self.agent, str):
            return learning.make(self.agent, **self.settings)
        made = self.agent(**self.settings) if callable(self.agent) else None
        if not isinstance(made, Agent) or made.task is not None:
            raise AgentError(
                f"the agent is {quoted(self.agent)}, expected a name (see actmeasure.learning.AGENTS) or a function that makes "
                "a new agent at every call"
            )
        return made


def run_seed(
    job: Job,
    agent: Agent,
    model: Model,
    seed: int,
    deliver: Callable[[Episodes], None],
    stops: Callable[[], bool] = lambda: False,
) -> None:
    """Train an agent, and deliver finished episodes now and then, until all are done, or `stops()`, or Ctrl-C."""
    delivered, last = 0, time.perf_counter()

    def progress(done: int, so_far: Episodes) -> None:
        nonlocal delivered, last
        if done < job.episodes and time.perf_counter() - last < DELIVERY_SECONDS:
            return
        deliver(so_far.part(delivered, done))
        delivered, last = done, time.perf_counter()
        if done < job.episodes and stops():
            raise KeyboardInterrupt  # which training takes as a wish to end well

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted after", RuntimeWarning)  # whoever called is going to say so
        results = train(
            agent, model, job.episodes, seed, job.max_steps, planned_episodes=job.planned_episodes, progress=progress
        )
    if len(results) > delivered:
        deliver(results.part(delivered, len(results)))


# ----------------------------------------------------------------------------------------------------
# Worker processes, each of which trains one seed after the other.
#
# What is said between the processes: a number and a seed to a worker, to train it, or None, to stop; from a worker parts of
# finished episodes, None when the seed is done, or a sentence when it cannot go on.
# ----------------------------------------------------------------------------------------------------


#: Ctrl-C and progress are attended to this often, in seconds.
ATTENTION_SECONDS = 0.1


class _Worker(WorkerProcess):
    """A worker process and the number of the seed that it trains, if any."""

    def __init__(self, job: Job, contents: bytes) -> None:
        super().__init__(_work, job, contents)
        self.number: int | None = None

    def tell(self, message: tuple[int, int] | None) -> None:
        """Have it train a seed, or stop."""
        self.number = self.number if message is None else message[0]
        self.say(message)


def train_in_processes(job: Job, model: Model, ledger: Ledger, workers: int, interrupts: Interrupts) -> str | None:
    """Train the seeds that are not finished; returns why it had to stop early, if a worker could not go on.

    After Ctrl-C workers stop at the end of an episode, after a second one at once. What they have delivered is kept.
    """
    waiting = ledger.unfinished
    for number in waiting:
        ledger.restart(number)
    contents = _contents(job, model)
    staff: list[_Worker] = []
    try:
        staff += (_Worker(job, contents) for _ in range(min(workers, len(waiting))))
        return _manage(staff, waiting, ledger, interrupts)
    except BaseException as error:
        for worker in staff:
            worker.kill()
        if isinstance(error, KeyboardInterrupt):  # pressed again, by somebody in a hurry
            return None
        raise
    finally:
        for worker in staff:
            worker.end()


def why_unsendable(job: Job) -> str | None:
    """Why the agent cannot be made in another process, if so."""
    try:
        pickle.dumps(job)
    except Exception as error:  # pickle lets through whatever the object raises
        return str(error)
    return None


def _contents(job: Job, model: Model) -> bytes:
    """The model for another process; pickled, its arrays could be written to, for which kernels are compiled anew."""
    if reason := why_unsendable(job):
        raise AgentError(
            f"the agent {job.name!r} or its settings cannot be sent to worker processes ({reason}); define it at the top of a "
            "module, or pass workers=1"
        )
    file = io.BytesIO()
    npz.write(model, file)
    return file.getvalue()


def _manage(staff: list[_Worker], waiting: list[int], ledger: Ledger, interrupts: Interrupts) -> str | None:
    """Hand out seeds and collect episodes until all workers are idle."""
    failure: str | None = None
    for worker in staff:
        _give_work(worker, waiting, ledger)
    while busy := [worker for worker in staff if worker.number is not None]:
        ready = wait([worker.connection for worker in busy], ATTENTION_SECONDS)
        for worker in busy:
            if worker.connection in ready:
                trouble = _listen(worker, ledger)
                failure = failure or trouble
                if worker.number is None and not ledger.stopping and failure is None:
                    _give_work(worker, waiting, ledger)
        if (interrupts.requested or failure is not None) and not ledger.stopping:
            ledger.stopping = True
            for worker in busy:
                worker.tell(None)
        ledger.show()
    return failure


def _give_work(worker: _Worker, waiting: list[int], ledger: Ledger) -> None:
    if waiting:
        number = waiting.pop(0)
        worker.tell((number, ledger.seeds[number]))


def _listen(worker: _Worker, ledger: Ledger) -> str | None:
    """Take in what a worker says; returns why it cannot go on, if so."""
    number = worker.number
    try:
        said = worker.connection.recv()
    except (EOFError, OSError):
        worker.number = None
        return worker.obituary()
    if isinstance(said, Episodes) and number is not None:
        ledger.add(number, said)
        return None
    worker.number = None
    return None if said is None else f"seed {ledger.seeds[number or 0]} failed: {said}"


def _work(connection: Connection, job: Job, contents: bytes) -> None:
    """What a worker process does."""
    with suppress(
        EOFError, ConnectionError
    ):  # the process that started this one has ended, so that nobody wants results
        try:
            model = npz.read(contents)
            while (message := connection.recv()) is not None:
                _, seed = message
                # Nothing is said to a worker while it trains but that it is to stop.
                run_seed(job, job.new_agent(), model, seed, connection.send, connection.poll)
                connection.send(None)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:
            connection.send(_sentence(error))


def _sentence(error: Exception) -> str:
    if isinstance(error, ActMeasureError):
        return str(error)
    if isinstance(error, MemoryError):
        return "the memory of this machine is used up; try fewer workers"
    return f"{type(error).__name__}: {error}; pass workers=1 to see where"


#: Starting worker processes takes some seconds: they are not worth it for less than that.
STARTING_SECONDS = 3.0
#: How long a run is tried here before it is known how long it is going to take.
TRIAL_SECONDS = 1.0
#: Results of more than this fit into no memory.
MOST_SEEDS, MOST_EPISODES = 10**6, 10**9
#: What fits into a column of a table, and into a kernel.
LARGEST = 2**63 - 1

Progress = Callable[[SeedProgress], None]


def train_seeds(
    agent: AgentMaker,
    model: Model,
    episodes: int,
    seeds: int | Iterable[int] = 5,
    max_steps: int = 1000,
    settings: Mapping[str, Any] | None = None,
    planned_episodes: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> SeedRuns:
    """Train an agent several times, with different seeds, on all cores that this process may use.

    Every seed gives the episodes that `train` gives with a new agent, whatever the number of workers.

    Parameters
    ----------
    agent : str, or function that makes a new agent
        A name as for `actmeasure.learning.make`. A function is called once for every seed; for more than one worker it has to
        be defined at the top of a module.
    model : Model
    episodes : int
        For each seed.
    seeds : int, or ints
        How many (0, 1, 2, ...), or which.
    max_steps : int
        An episode is cut off after this many steps.
    settings : mapping, optional
        What the agent is made with.
    planned_episodes : int, optional
        How many episodes the agent is told to expect; `episodes` by default.
    workers : int, optional
        How many processes to use; 1 for this one alone. By default a short run stays here and a long one uses all cores.
        A script that starts processes needs `if __name__ == "__main__":` before what it does.
    progress : function, optional
        Called now and then with a `SeedProgress`.

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
    check_may_start("train_seeds", AgentError)
    count = whole(episodes, "episodes", 1, error=AgentError)
    job = Job(agent, dict(settings or {}), count, _steps(max_steps), _planned(planned_episodes))
    chosen = _checked_seeds(seeds, job.episodes)
    processes = None if workers is None else whole(workers, "workers", 1, error=AgentError)
    _check_model(model)
    job.new_agent()  # so that a mistake in the settings is known before anything begins
    ledger = Ledger(chosen, job.episodes, progress)
    return _train(job, model, ledger, processes, job.new_agent)


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
    _check_model(model)
    count = whole(episodes, "episodes", 1, error=AgentError)
    name = getattr(agent, "name", type(agent).__name__)
    job = Job(name, {}, count, _steps(max_steps), _planned(planned_episodes))
    ledger = Ledger(_checked_seeds([seed], count), count, progress)
    return _train(job, model, ledger, 1, lambda: agent, agent.episodes_done)


def _steps(max_steps: int) -> int:
    return whole(max_steps, "max_steps", 1, LARGEST, AgentError)


def _planned(episodes: int | None) -> int | None:
    return None if episodes is None else whole(episodes, "planned_episodes", 1, LARGEST, AgentError)


def _check_model(model: Model) -> None:
    if not isinstance(model, Model):
        raise SpaceError(
            f"the world is of type {type(model).__name__}, expected a Model; use train for environments, seed by seed"
        )


def _checked_seeds(seeds: int | Iterable[int], episodes: int) -> tuple[int, ...]:
    given = seeds if isinstance(seeds, Iterable) else range(whole(seeds, "seeds", 1, error=AgentError))
    chosen = tuple(whole(seed, "a seed", 0, LARGEST, AgentError) for seed in islice(given, MOST_SEEDS + 1))
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


def _train(
    job: Job, model: Model, ledger: Ledger, workers: int | None, new_agent: Callable[[], Agent], first_episode: int = 0
) -> SeedRuns:
    cores = workers
    if cores is None:
        cores = 1 if why_unsendable(job) else available_cores()
    several = min(cores, len(ledger.seeds)) > 1
    failure: str | None = None
    with deferred_interrupts() as interrupts:
        if not several or workers is None:
            failure = _train_here(job, model, ledger, interrupts, new_agent, a_while=several)
        if several and failure is None and not interrupts.requested and ledger.unfinished:
            failure = train_in_processes(job, model, ledger, cores, interrupts)
    return _outcome(job, ledger, failure, first_episode)


def _train_here(
    job: Job,
    model: Model,
    ledger: Ledger,
    interrupts: Interrupts,
    new_agent: Callable[[], Agent],
    a_while: bool,
) -> str | None:
    """Train one seed after the other; for a while only, if others could take over and that is worth it."""
    trial = _Trial(ledger) if a_while else None
    for number, seed in enumerate(ledger.seeds):
        begun = running_time()

        def deliver(part: Episodes, number: int = number) -> None:
            ledger.add(number, part)
            ledger.show()
            if trial is not None:
                trial.note()

        def stops(begun: float = begun) -> bool:
            return trial is not None and trial.is_over(running_time() - begun)

        try:
            run_seed(job, new_agent(), model, seed, deliver, stops)
        except (ActMeasureError, MemoryError) as error:
            if not ledger.done:
                raise
            return f"seed {seed} failed: {error}"
        if interrupts.requested or (trial is not None and trial.is_over(0.0)):
            break
    return None


class _Trial:
    """Whether what is left takes so long that worker processes are faster."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun: float | None = None
        self._first = 0

    def note(self) -> None:
        """Episodes have been entered; time counts from the first ones on."""
        if self._begun is None:
            self._begun, self._first = running_time(), self._ledger.done

    def is_over(self, lost: float) -> bool:
        """Whether to hand over, though the seed that is being trained then begins again: so many seconds are lost."""
        if self._begun is None:
            return False
        seconds = running_time() - self._begun
        done, left = self._ledger.done - self._first, self._ledger.total - self._ledger.done
        return seconds > TRIAL_SECONDS and seconds * left > (STARTING_SECONDS + 2 * lost) * done


def _outcome(job: Job, ledger: Ledger, failure: str | None, first_episode: int) -> SeedRuns:
    """All that is finished, with a warning if that is not everything; an error if it is nothing."""
    if not ledger.unfinished:
        return ledger.runs(job.name, first_episode, "done", "")
    if not ledger.done:
        if failure is not None:
            raise AgentError(failure)
        raise KeyboardInterrupt
    if failure is None:
        runs = ledger.runs(job.name, first_episode, "interrupted", "Stopped with Ctrl-C")
    else:
        runs = ledger.runs(job.name, first_episode, "failed", failure[0].upper() + failure[1:])
    warnings.warn(runs.note, RuntimeWarning, stacklevel=4)
    return runs
