"""Planning methods are objects, found by name; a new one is an entry."""

import json
import os
import pickle
import sys
from dataclasses import dataclass
from importlib import import_module

import pytest
from command_line import actmeasure

import actmeasure as am
from actmeasure.kernel_arrays import dynamics
from actmeasure.planning import METHODS, Budget, Plan, register
from actmeasure.planning.baselines import Every
from actmeasure.planning.optimal import Optimal
from actmeasure.studies.code_digest import code_of

LAKE = am.problems.frozen_lake(4)


@dataclass(frozen=True)
class Repeat:
    """A user's method: repeat one action without looking."""

    action: int = 0
    tolerance: float = 1.0

    def solve(self, model, budget):
        plan = am.BlindPlan((self.action,), then="repeat", repeat=1)
        seen.append((self.tolerance, budget))
        return Plan(am.Schedule({int(state): plan for state in model.initial_states}, model.n_states))


seen = []


@pytest.fixture
def registered():
    register("mine", Repeat(action=2))
    yield
    del METHODS["mine"]


def test_a_method_of_ones_own_is_an_entry(registered):
    seen.clear()
    solution = am.solve(LAKE, "mine", tolerance=0.5, time_limit=60)
    assert solution.method == "mine"
    assert solution.stopped == "done"
    assert solution.schedule[0].actions == (2,)
    assert solution.value == am.evaluate(LAKE, solution.schedule).discounted_return
    assert solution.upper == am.solve(LAKE, "always").upper  # the informed bound, as the method has none of its own
    ((tolerance, budget),) = seen
    assert tolerance == 0.5
    assert budget.seconds == 60


def test_a_method_of_ones_own_solves_the_prices_of_a_tradeoff(registered):
    seen.clear()
    mine, atm = am.tradeoff(LAKE, method="mine", time_limit=20), am.tradeoff(LAKE, method="atm")
    assert seen
    assert mine.gap > mine.tolerance
    optimum = am.solve(LAKE.replace(measuring_cost=0.0))
    for frontier in (mine, atm):
        assert frontier.lower[0] - 1e-9 <= optimum.upper
        assert frontier.upper[0] + 1e-9 >= optimum.lower
    with pytest.raises(am.PlanError, match="did you mean 'mine'"):
        am.tradeoff(LAKE, method="mne")


MODULE = """
import actmeasure as am


class Repeat:
    def solve(self, model, budget):
        plan = am.BlindPlan((ACTION,), then="repeat", repeat=1)
        return am.planning.Plan(am.Schedule({int(s): plan for s in model.initial_states}, model.n_states))


ready = Repeat()
ACTION = 2
am.planning.register("own-repeat", ready)
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module with a method, on the path of this process and of those that it starts."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "own_method.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    yield folder
    METHODS.pop("own-repeat", None)
    sys.modules.pop("own_method", None)


@pytest.mark.parametrize("name", ["own_method:Repeat", "own_method:ready"])
def test_a_method_of_a_module_needs_no_registration(own_module, name):
    solution = am.solve(LAKE, name)
    assert (solution.method, solution.schedule[0].actions) == (name, (2,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Mine", "cannot be imported: ModuleNotFoundError"),
        ("own_method:Other", "cannot be imported: AttributeError"),
        ("own_method:ACTION", "expected an object with a method solve"),
        (":", "cannot be imported: ValueError"),
    ],
)
def test_what_is_wrong_with_a_method_of_a_module_is_said(own_module, name, message):
    with pytest.raises(am.PlanError, match=message):
        am.solve(LAKE, name)


def test_commands_take_a_method_of_a_module(own_module):
    for command in ("solve", "tradeoff"):
        done = actmeasure(command, "frozen-lake", "--method", "own_method:Repeat", "--time-limit", "20", "--json")
    assert json.loads(done.stdout)["pieces"]


def test_studies_take_methods_of_ones_own(own_module, tmp_path):
    import_module("own_method")
    lake = am.studies.ProblemSpec("lake", "frozen-lake")
    part = am.studies.Part("plans", "Plans", [lake], methods=["own-repeat", "own_method:Repeat", "optimal"])
    study = am.studies.Study("own", "Own methods", [part])
    summary = am.run_study(study, tmp_path / "results", am.studies.LocalEngine(workers=1))
    assert summary.stopped == "done", summary
    trials = {trial.method: trial for trial in study.trials()}
    before = {method: code_of(trial) for method, trial in trials.items()}
    assert before["own-repeat"] == before["own_method:Repeat"] != before["optimal"]


def test_a_method_that_workers_cannot_import_is_refused(monkeypatch):
    monkeypatch.setitem(METHODS, "here", type("Here", (Repeat,), {"__module__": "__main__"})())
    trial = am.studies.Trial.plan(am.studies.ProblemSpec("lake", "frozen-lake"), "here")
    with pytest.raises(am.StudyError, match="workers cannot import; define and register it in a module"):
        code_of(trial)


def test_a_registered_name_is_suggested(registered):
    with pytest.raises(am.PlanError, match="did you mean 'mine'"):
        am.solve(LAKE, "mne")


def test_a_name_is_taken_once(registered):
    for name in ("mine", "optimal"):
        with pytest.raises(am.PlanError, match="exists already"):
            register(name, Repeat())


@pytest.mark.parametrize("wrong", [Repeat, "optimal", None, lambda model, budget: None])
def test_only_objects_with_solve_are_methods(wrong):
    with pytest.raises(am.PlanError, match="expected an object with a method solve"):
        register("other", wrong)
    assert "other" not in METHODS


def test_a_method_may_be_given_as_an_object():
    assert am.solve(LAKE, Every(3)).value == am.solve(LAKE, "every-3").value
    assert am.solve(LAKE, Optimal(relative_tolerance=0.5), tolerance=1e-9).gap > 1e-9


def test_what_a_method_returns_is_checked():
    class Wrong:
        def solve(self, model, budget):
            return am.Schedule({}, model.n_states)

    with pytest.raises(am.PlanError, match="expected a Plan"):
        am.solve(LAKE, Wrong())


def test_the_methods_can_be_listed():
    assert list(am.planners.METHODS) == ["optimal", "atm", "atm-qmdp", "atm-linear", "always", "never"]


def test_arrays_for_kernels_are_built_once_per_model():
    assert dynamics(LAKE) is dynamics(LAKE)
    cheaper = LAKE.replace(measuring_cost=0.01)
    assert dynamics(cheaper).costs[0] == 0.01
    assert dynamics(cheaper).rewards.base is dynamics(LAKE).rewards.base  # shared, as models share their tables


def test_arrays_for_kernels_are_not_sent_along():
    model = am.problems.frozen_lake(8)
    before = len(pickle.dumps(model))
    am.solve(model, "always")
    assert len(pickle.dumps(model)) == before
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_same_work_gives_the_same_plan():
    lake = am.problems.frozen_lake(8, "slippery", discount=0.99)
    first, second = (am.solve(lake, tolerance=1e-9, budget=Budget(work=2000)) for _ in range(2))
    assert first.stopped == "beliefs"
    assert first.schedule == second.schedule
    assert (first.lower, first.upper) == (second.lower, second.upper)
    assert first.value >= am.solve(lake, "atm").value - 1e-12  # the better of the two
    more = am.solve(lake, tolerance=1e-9, budget=Budget(work=20_000))
    assert more.gap < first.gap


def test_names_of_every_k_are_reserved():
    with pytest.raises(am.PlanError, match=r"begins with every-, which stands for Every\(k\); choose another name"):
        am.planning.register("every-thing", am.planning.METHODS["always"])


def test_a_class_in_place_of_an_object_is_named():
    with pytest.raises(am.PlanError, match=r"the class Always, expected an object: Always\(\)"):
        am.solve(am.problems.frozen_lake(4), type(am.planning.METHODS["always"]))
