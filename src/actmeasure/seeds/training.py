"""Training with several seeds, in this process or in several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from actmeasure.agents.base import Agent
from actmeasure.episodes import Episodes
from actmeasure.errors import ActMeasureError, AgentError, SpaceError
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels.jit import running_time
from actmeasure.model import Model
from actmeasure.processes import available_cores, check_may_start
from actmeasure.seeds.job import AgentMaker, Job, run_seed
from actmeasure.seeds.ledger import Ledger, SeedProgress
from actmeasure.seeds.runs import SeedRuns
from actmeasure.seeds.workers import train_in_processes, why_unsendable
from actmeasure.settings import whole

__all__ = ["SeedProgress", "train_agent", "train_seeds"]

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
        A name as for `actmeasure.agents.make`. A function is called once for every seed; for more than one worker it has to
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
