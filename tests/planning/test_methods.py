"""Planning methods are objects, found by name; a new one is an entry."""

import pickle
from dataclasses import dataclass

import pytest

import actmeasure as am
from actmeasure.kernel_arrays import dynamics
from actmeasure.planning import METHODS, Budget, Plan, register
from actmeasure.planning.baselines import Every
from actmeasure.planning.optimal import Optimal

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
