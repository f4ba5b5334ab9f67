"""Worker processes, each of which trains one seed after the other.

What is said between the processes: a number and a seed to a worker, to train it, or None, to stop; from a worker parts of
finished episodes, None when the seed is done, or a sentence when it cannot go on.
"""

from __future__ import annotations

import io
import pickle
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from actmeasure.episodes import Episodes
from actmeasure.errors import ActMeasureError, AgentError
from actmeasure.files import npz
from actmeasure.interrupts import Interrupts
from actmeasure.model import Model
from actmeasure.processes import WorkerProcess
from actmeasure.seeds.job import Job, run_seed
from actmeasure.seeds.ledger import Ledger

__all__ = ["train_in_processes", "why_unsendable"]

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
