"""`solve`: one entry to all planning methods, and the registry of their names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from actmeasure.errors import PlanError, quoted, unknown_name
from actmeasure.evaluation import evaluate, values_of
from actmeasure.markov import RoundingError
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.act_then_measure import ActThenMeasure, AtmLinear, AtmQmdp
from actmeasure.planning.baselines import Always, Every
from actmeasure.planning.bounds import informed_bounds, start_bound
from actmeasure.planning.budget import Budget, Progress
from actmeasure.planning.optimal import Never, Optimal
from actmeasure.planning.solution import Plan, Solution
from actmeasure.progress import end_line
from actmeasure.schedule import Schedule
from actmeasure.settings import amount, imported, real

__all__ = ["METHODS", "Method", "is_search", "method_of", "module_of", "register", "solve", "solve_by_work"]


@runtime_checkable
class Method(Protocol):
    """A planning method: an object with settings, and `solve`.

    Settings are attributes. If it is a dataclass with fields `tolerance` or `relative_tolerance`, they get the values that
    `am.solve` is called with. A method with a relative tolerance is a search: it spends `budget.work`.
    """

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return a schedule for the model, with what the method knows about it.

        Methods that can return something better later check `budget.stops()` as they go, and report bounds with `budget.note`.
        """
        ...


#: Methods by name. `every-k` stands for `Every(k)` with any k.
METHODS: dict[str, Method] = {
    "optimal": Optimal(),
    "atm": ActThenMeasure(),
    "atm-qmdp": AtmQmdp(),
    "atm-linear": AtmLinear(),
    "always": Always(),
    "never": Never(),
}
#: Relative amount by which the value of a schedule may exceed the upper bound because of rounding.
BOUND_SLACK = 1e-7
#: Largest k of `every-k`.
LARGEST_K = 10_000
#: An absolute gap that counts as closed where the tolerance is relative.
NEGLIGIBLE_GAP = 1e-9
EVERY = re.compile(r"every-([1-9][0-9]*)")


def solve(
    model: Model,
    method: str | Method = "optimal",
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] = False,
    *,
    relative_tolerance: float | None = None,
    budget: Budget | None = None,
) -> Solution:
    """Plan what to do and when to look, with the exact value of the plan and an upper bound on the optimum.

    The plan is a schedule where looks are exact, and a policy graph otherwise.

    Parameters
    ----------
    model : Model
    method : str or Method
        `optimal`: bounds on the optimum within `tolerance`, or as close as the time allows. `atm`: act-then-measure, with the
        best moment to look along its control. `atm-qmdp`: as the paper runs it, which can go round in a cycle without end.
        `atm-linear`: the paper's equations as printed, whose claimed value is not what the schedule earns. `always`: look at
        every step. `never`: the best plan that never looks. `every-3` (any number): look at every third step. A name given to
        `register`, `package.module:Name` for a method of another package (see `register`), or an object with a method
        `solve(model, budget)`.
    tolerance : float
        Planning ends when upper - lower is at most this.
    time_limit : float, optional
        Seconds. `optimal`, `never` and `atm` then return the best so far with the bounds they have; so does Ctrl-C. The other
        methods have nothing to return before they are done.
    progress : bool or function
        True prints the bounds as they get closer; a function is called with every `Progress`.
    relative_tolerance : float, optional
        Planning also ends when upper - lower is at most this share of |upper|, and of |lower| where looks are exact; by
        default the setting of the method: 0, and 1e-3 for `optimal` where looks are not exact.
    budget : Budget, optional
        Instead of `time_limit` and `progress`: a limit on the work as well, which makes the result independent of the machine's
        speed. Its clock starts anew.

    Returns
    -------
    Solution
        `lower` is the exact value of its schedule, `upper` a sound bound on the optimum, whatever the method; `stopped` says
        why planning stopped.

    Examples
    --------
    >>> import actmeasure as am
    >>> solution = am.solve(am.problems.frozen_lake(4, measuring_cost=0.05))
    >>> round(solution.value, 4)
    0.6805
    """
    chosen = method_of(method)
    if not isinstance(model, Model):
        raise PlanError(f"the model is {quoted(model)}, expected a Model")
    tolerance = amount(tolerance, "tolerance", True, PlanError, "a number above 0, such as 1e-6")
    if relative_tolerance is not None:
        expected = "a share from 0 to 1, such as 1e-3"
        relative_tolerance = real(relative_tolerance, "relative_tolerance", PlanError, expected)
        if not 0 <= relative_tolerance <= 1:
            raise PlanError(f"relative_tolerance is {relative_tolerance!r}, expected {expected}")
    budget = Budget.of(time_limit, progress, budget)
    try:
        plan = _with_tolerances(chosen, tolerance, relative_tolerance).solve(model, budget)
    finally:
        if budget.progress is True:
            end_line()
    if not isinstance(plan, Plan):
        raise PlanError(f"the method {quoted(method)} returned {quoted(plan)}, expected a Plan")
    return _solution(model, method if isinstance(method, str) else type(method).__name__, plan, budget)


def solve_by_work(
    model: Model, tolerance: float, beliefs: int, method: str = "optimal", *, interruptible: bool = True
) -> Solution:
    """Return a solution within a relative tolerance, or when that much work is spent: the same on every machine.

    The tolerance of methods that are no search is absolute. Without `interruptible`, Ctrl-C does not end the search.
    """
    absolute = NEGLIGIBLE_GAP if is_search(method) else tolerance
    budget = Budget(work=beliefs, interruptible=interruptible)
    return solve(model, method, absolute, relative_tolerance=tolerance, budget=budget)


def is_search(method: str) -> bool:
    """Return whether a method spends a budget of work, up to a relative tolerance."""
    return _has_setting(method_of(method), "relative_tolerance")


def register(name: str, method: Method) -> None:
    """Make a planning method available by name: in `solve`, in `tradeoff`, and in studies.

    A registration lasts as long as the process. Workers of a study import the module in which the method's class is defined, so
    that module should register it. Commands know a method that is not part of the library by the name `package.module:Name`,
    where Name is an object with a method `solve`, or a class of such objects that takes no arguments; it needs no registration.

    Parameters
    ----------
    name : str
        Not one that is taken.
    method : Method
        An object with a method `solve(model, budget)` that returns a `Plan`.

    Examples
    --------
    >>> import actmeasure as am
    >>> class Stay:
    ...     def solve(self, model, budget):
    ...         plan = am.BlindPlan((0,), then="repeat", repeat=1)
    ...         return am.planning.Plan(am.Schedule({int(s): plan for s in model.initial_states}, model.n_states))
    >>> am.planning.register("stay", Stay())
    >>> am.solve(am.problems.frozen_lake(4), "stay").value
    0.0
    >>> del am.planning.METHODS["stay"]
    """
    if not isinstance(name, str) or not name.strip():
        raise PlanError(f"the name of a planning method is {quoted(name)}, expected some text")
    if name.startswith("every-"):
        raise PlanError(f"the name {quoted(name)} begins with every-, which stands for Every(k); choose another name")
    if ":" in name:
        raise PlanError(f"the name {quoted(name)} has a colon, as package.module:Name; choose another name")
    if name in METHODS:
        raise PlanError(f"the planning method {quoted(name)} exists already; choose another name")
    _check_method(method)
    METHODS[name] = method


def method_of(method: str | Method) -> Method:
    """Return the method of a name, or the method itself; an unknown name is a `PlanError` that suggests a similar one.

    The name `package.module:Name` imports a method from a module.
    """
    if not isinstance(method, str):
        if isinstance(method, type) and hasattr(method, "solve"):
            raise PlanError(f"the method is the class {method.__name__}, expected an object: {method.__name__}()")
        if isinstance(method, Method):
            return method
        raise PlanError(unknown_name("method", method, [*METHODS, "every-3"]))
    if method in METHODS:
        return METHODS[method]
    if ":" in method:
        return _imported_method(method)
    every = EVERY.fullmatch(method)
    if every is not None and len(every[1]) <= len(str(LARGEST_K)) and int(every[1]) <= LARGEST_K:
        return Every(int(every[1]))
    if every is not None:
        raise PlanError(f"the method is {quoted(method)}, expected k up to {LARGEST_K}; to look more rarely, use never")
    if method.startswith("every-"):
        raise PlanError(
            f"the method is {quoted(method)}, expected every-k with k a whole number from 1 up, such as every-3"
        )
    raise PlanError(unknown_name("method", method, [*METHODS, "every-3"]))


def module_of(method: str) -> str:
    """Return the name of the module in which the class of a method is defined."""
    return type(method_of(method)).__module__


def _imported_method(name: str) -> Method:
    """Return the method of a name `package.module:Name`; if that is a class, an object of it."""
    method = imported("method", name, PlanError)
    if isinstance(method, type):
        try:
            method = method()
        except Exception as error:  # whatever the class raises
            raise PlanError(
                f"the method {quoted(name)} cannot be made: {type(error).__name__}: {error}; expected a class without arguments, "
                "or an object"
            ) from error
    _check_method(method)
    return cast("Method", method)


def _check_method(method: Any) -> None:
    if isinstance(method, type) or not isinstance(method, Method):
        raise PlanError(
            f"the planning method is {quoted(method)}, expected an object with a method solve(model, budget) that returns a Plan"
        )


def _has_setting(method: Method, name: str) -> bool:
    """Return whether a method is a dataclass with a field of this name, which `solve` may set."""
    return is_dataclass(method) and any(field.name == name for field in fields(method))


def _with_tolerances(method: Method, tolerance: float, relative: float | None) -> Method:
    """Return the method with these tolerances, as far as they are among its settings."""
    given = {"tolerance": tolerance, "relative_tolerance": relative}
    changes = {name: value for name, value in given.items() if value is not None and _has_setting(method, name)}
    return cast("Method", replace(cast("Any", method), **changes)) if changes else method


def _solution(model: Model, name: str, plan: Plan, budget: Budget) -> Solution:
    """Evaluate the schedule exactly and check it against the upper bound; what a search proved needs no evaluation."""
    if plan.search is not None and plan.lower is not None and plan.upper is not None:
        return Solution(
            model=model, method=name, schedule=cast("Schedule", None), lower=plan.lower, upper=plan.upper,
            values=np.full(model.n_states, -np.inf), seconds=budget.elapsed, stopped=plan.stopped, record=tuple(budget.record),
            graph=plan.graph, belief_policy=plan.policy, search=plan.search,
        )  # fmt: skip
    try:
        acts = plan.schedule if plan.graph is None else plan.graph
        if acts is None:
            raise PlanError(
                f"the method {quoted(name)} returned a Plan without a schedule or graph; give it one of them"
            )
        evaluation = evaluate(model, acts) if plan.evaluation is None else plan.evaluation
    except RoundingError as error:
        raise PlanError(
            "part of the problem is left with a chance so small that what a schedule earns is lost in rounding; use a discount "
            "below 1"
        ) from error
    # Without discount, gains and losses that alternate without end have no sum; nothing finite is certain then.
    value = -math.inf if math.isnan(evaluation.discounted_return) else evaluation.discounted_return
    upper = start_bound(model, *informed_bounds(model, budget)) if plan.upper is None else plan.upper
    _check_bound(model, value, upper)
    if plan.schedule is None:
        bounds: FloatArray = np.full(model.n_states, -np.inf)
    else:
        bounds = values_of(model, plan.schedule) if plan.values is None else plan.values
    return Solution(
        model=model,
        method=name,
        schedule=cast("Schedule", plan.schedule),  # None where looks are not exact
        evaluated=evaluation,
        lower=value - evaluation.discounted_error,
        upper=max(upper, value),
        values=np.where(np.isnan(evaluation.values), bounds, evaluation.values),
        seconds=budget.elapsed,
        stopped=plan.stopped,
        record=tuple(budget.record),
        claimed=plan.claimed,
        method_upper=plan.method_upper,
        graph=plan.graph,
        belief_policy=plan.policy,
        merged=plan.merged,
    )


def _check_bound(model: Model, value: float, upper: float) -> None:
    """Raise an error if a value exceeds the upper bound by more than rounding."""
    scale = 1 + abs(upper) + float(np.abs(model.rewards).max())
    if value <= upper + BOUND_SLACK * scale:
        return
    if model.discount == 1:
        raise PlanError(
            "without discount, the schedule goes round without end in a cycle of gains and losses, which have no sum, or what it "
            "earns is lost in rounding because ends are too unlikely; use a discount below 1"
        )
    raise RuntimeError(
        f"the schedule earns {value!r}, above the bound {upper!r} on every schedule; this is an error in actmeasure, not in "
        "your model: please report it with the model (model.save writes it to a file)"
    )
