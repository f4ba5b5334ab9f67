"""What the tests of studies share: a small study, an engine without processes, and tables as text."""

from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, read_results
from actmeasure.studies.code_digest import code_of
from actmeasure.studies.engines.base import Outcome, perform


def small_study(name="small", episodes=30, seeds=3, **changes):
    """Two parts that share trials: 3 agents on 2 problems, and plans."""
    lake = ProblemSpec("4x4", "frozen-lake", {"size": 4})
    agents = ["amrl-q", AgentSpec("published", "atmq", {"preset": "published"}), AgentSpec("few", "random", seeds=1)]
    first = Part("first", "First", [lake, "chain"], agents, episodes, seeds, methods=["optimal", "every-2"], **changes)
    second = Part("second", "Second", [lake], ["amrl-q"], episodes, seeds + 1, **changes)
    return Study(name, "A small study", [first, second])


def tables(directory):
    """All tables of a study, as one text."""
    results = read_results(directory)
    assert not results.missing
    return "".join(frame.to_csv(index=False) for frame in (results.runs, results.episodes, results.plans))


def stored(directory):
    """The hashes of stored trials."""
    return {path.stem.partition("-")[0] for path in (directory / "trials").glob("*.parquet")}


def place_of(directory, trial):
    """The file of a trial, as the code that is here computes it."""
    return directory / "trials" / f"{trial.hash}-{code_of(trial)}.parquet"


class InlineEngine:
    """Runs trials in this process, one after the other, and remembers which.

    Parameters
    ----------
    fails : function, optional
        Of a trial: why it is to fail, if so.
    """

    name, at_once = "inline", 1

    def __init__(self, fails=lambda trial: ""):
        self.ran, self._fails = [], fails

    def run(self, orders, interrupts, note):
        for order in orders:
            if interrupts.requested:
                return
            self.ran.append(order.trial)
            why = self._fails(order.trial)
            yield Outcome(order.trial, None, 0.0, why) if why else Outcome(order.trial, *perform(*order.packed()))
            yield None
