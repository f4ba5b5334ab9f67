"""The results of planning: `Plan`, which a method returns, and `Solution`, which `solve` makes of it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError, counted, import_extra, shown
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.model import Model
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget, Progress, Stopped, why_open
from actmeasure.planning.explain import Explanation, explain
from actmeasure.planning.explain_belief import BeliefExplanation, explain_belief
from actmeasure.policy import BeliefPolicy, Policy
from actmeasure.policy_graph import PolicyGraph
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import amount, whole
from actmeasure.text import name_value_lines, shortened, text_table

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

    from actmeasure.planning.outcome_search import OutcomeSearch


__all__ = ["Plan", "Solution", "is_small", "solution_frame", "solution_notes", "solution_text", "worst_value"]

#: Nodes of the controller that is evaluated, and written, where the graph of all value vectors is too large.
READABLE = 30
#: Nodes up to which that graph is simplified to see whether it is readable as it is.
SMALL_GRAPH = 2000
#: Most seconds, and relative tolerance, of the search that guides a controller where the method was no such search.
GUIDE_SECONDS, GUIDE_TOLERANCE = 4.0, 1e-2


@dataclass(frozen=True, eq=False)
class Plan:
    """What a planning method returns: a schedule or a policy graph, and what the method knows about it.

    Attributes
    ----------
    schedule : Schedule, or None
        None where looks are not exact; then there is a `graph`.
    upper : float or None
        An upper bound on the optimum; `solve` computes the fast informed bound where there is none.
    values : float64 array, shape (S,), or None
        Lower bounds on what can be achieved from each state once it is known.
    stopped : str
        Why the method stopped; see `Solution`.
    claimed : float or None
        The value that the method ascribes to its schedule, where that may be false.
    method_upper : float or None
        An upper bound on the schedules of the method's kind.
    evaluation : Evaluation or None
        Of the schedule over all time, where the method computed it.
    graph : PolicyGraph or None
        The controller that was found where looks are not exact.
    policy : Policy or None
        What acts in any belief, where the method has it.
    merged : float
        Beliefs whose probabilities differ by less than this were taken as one node of the graph; 0 if none were.
    search : OutcomeSearch or None
        The search, with its value vectors and beliefs, where looks are not exact and the method is `optimal`.
    lower : float or None
        A lower bound on what the policy earns, where it is proved otherwise than by the evaluation of a graph.
    """

    schedule: Schedule | None
    upper: float | None = None
    values: FloatArray | None = None
    stopped: Stopped = "done"
    claimed: float | None = None
    method_upper: float | None = None
    evaluation: Evaluation | None = None
    graph: PolicyGraph | None = None
    policy: BeliefPolicy | None = None
    merged: float = 0.0
    search: OutcomeSearch | None = None
    lower: float | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """A schedule, or a policy graph where looks are not exact, its exact value, and bounds on the optimum.

    Attributes
    ----------
    model : Model
    method : str
    schedule : Schedule
        None where looks are not exact; see `policy` and `policy_graph` then.
    evaluation : Evaluation
        Of the schedule, or of the policy graph where looks are not exact, over all time; computed when first asked for. Where the
        graph of all value vectors is too large, that of `policy_graph(30)`.
    lower : float
        A lower bound on the optimum: the discounted return of the schedule or graph, rounded downwards, or what the value vectors
        of a search prove about `policy`.
    upper : float
        A sound upper bound on the optimum, whatever the method.
    values : float64 array, shape (S,)
        Lower bounds on what is achieved from each state once it is known.
    seconds : float
        Time it took.
    stopped : str
        Why planning stopped. `closed`: the bounds are within the tolerance (`optimal`, and `never` for its own bound). `time`:
        the time limit was over. `beliefs`: the limit on the work was reached. `interrupted`: Ctrl-C. `memory`: the search may
        not grow any more. `exhausted`: the search cannot get closer, because of rounding or because there is no discount.
        `done`: the method is no search, or `atm` is finished.
    record : tuple of Progress
        The bounds over time.
    claimed : float or None
        The value that the method ascribes to its schedule, where that differs (`atm-linear`).
    method_upper : float or None
        A bound on the best schedule of the method's kind, where it has one of its own (`never`).
    """

    model: Model
    method: str
    schedule: Schedule
    lower: float
    upper: float
    values: FloatArray
    seconds: float
    stopped: Stopped = "done"
    record: tuple[Progress, ...] = field(default=(), repr=False)
    claimed: float | None = None
    method_upper: float | None = None
    graph: PolicyGraph | None = None
    belief_policy: BeliefPolicy | None = field(default=None, repr=False)
    #: Beliefs whose probabilities differ by less than this were taken as one node of the policy graph; 0 if none were.
    merged: float = 0.0
    #: The search behind the bounds where looks are not exact.
    search: OutcomeSearch | None = field(default=None, repr=False)
    #: The evaluation, where the method computed it.
    evaluated: Evaluation | None = field(default=None, repr=False)
    #: The controllers that `policy_graph` has found, by its arguments.
    _controllers: dict[tuple[int, float, float | None], PolicyGraph] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def evaluation(self) -> Evaluation:
        """What the schedule, or the policy graph where looks are not exact, does over all time."""
        if self.evaluated is not None:
            return self.evaluated
        if self.schedule is None and self.graph is None:
            return self.policy_graph(READABLE).evaluation
        return evaluate(self.model, self.graph if self.schedule is None else self.schedule)

    @property
    def policy(self) -> Policy:
        """What decides step by step: follows the schedule, or acts in any belief where looks are not exact."""
        if self.belief_policy is not None:
            return self.belief_policy
        return self.schedule.policy(self.model) if self.graph is None else self.graph.policy(self.model)

    def policy_graph(
        self, nodes: int | None = None, *, within: float = 0.0, time_limit: float | None = 20.0
    ) -> PolicyGraph:
        """Return a controller: nodes with a decision, and an edge for each outcome; `graph.evaluation` is exact.

        Parameters
        ----------
        nodes : int, optional
            Return the best controller found with at most this many nodes, which a person can read; `loss` tells what it loses.
            By default the whole graph of the schedule or of the value vectors, which is worth `lower` at least.
        within : float
            With `nodes`: drop nodes while the value is at least `lower` minus this share of |lower|; 0.01 for a loss of 1 %.
        time_limit : float, optional
            With `nodes`: seconds after which the best so far is returned; None for no limit.

        Examples
        --------
        >>> import actmeasure as am
        >>> solution = am.solve(am.problems.tiger())
        >>> graph = solution.policy_graph(nodes=10)
        >>> len(graph), round(graph.evaluation.discounted_return, 4)
        (5, 19.3714)
        """
        if nodes is None:
            return self._whole_graph()
        nodes = whole(nodes, "nodes", 1, error=PlanError, what="a number of nodes")
        within = amount(within, "within", False, PlanError, "a share that is 0 or more, such as 0.01")
        key = (nodes, within, time_limit)
        if key not in self._controllers:
            found = self._readable(nodes, float(within), Budget.of(time_limit))
            if within == 0:  # more nodes never lose more than fewer, whatever the time limits
                known = [one for one in self._controllers.values() if len(one) <= nodes]
                found = max([found, *known], key=_worth)
            self._controllers[key] = found
        return self._controllers[key]

    def _whole_graph(self) -> PolicyGraph:
        if self.schedule is None and self.graph is None:
            raise PlanError(
                "the policy graph of all value vectors is too large; ask for a controller of few nodes, policy_graph(nodes=30), "
                "or use solution.policy, which decides in any belief"
            )
        graph = self.schedule.policy_graph(self.model) if self.graph is None else self.graph
        simple = graph.simplified(self.model)
        return simple.with_evaluation(lambda: evaluate(self.model, simple))

    def _readable(self, nodes: int, within: float, budget: Budget) -> PolicyGraph:
        """Return the whole graph if it is small enough, and otherwise a controller that is grown from the vectors of a search."""
        from actmeasure.planning.controllers import readable_controller
        from actmeasure.planning.outcome_search import OutcomeSearch

        is_found = self.search is None or self.stopped == "closed"
        is_small = self.schedule is not None if self.graph is None else len(self.graph) <= SMALL_GRAPH
        if within == 0 and is_found and is_small:
            graph = self._whole_graph()
            if len(graph) <= nodes:
                return graph
        search = self.search
        if search is None:
            search = OutcomeSearch(self.model, budget.part(0.5, GUIDE_SECONDS))
            search.run(1e-6, GUIDE_TOLERANCE)
        floor = self.lower - within * abs(self.lower) if within else math.inf
        return readable_controller(search, nodes, budget, self.upper, floor)

    def loss(self, policy: PolicyGraph | Schedule) -> tuple[float, float]:
        """Return bounds on what a policy loses against the optimum: at least and at most so much, in discounted return.

        Examples
        --------
        >>> import actmeasure as am
        >>> model = am.problems.tiger()
        >>> solution = am.solve(model, relative_tolerance=1e-6)
        >>> listen = am.PolicyGraph([am.Decision(0)], edges=[{None: 0}])
        >>> at_least, at_most = solution.loss(listen)
        >>> print(f"{at_least:.2f} to {at_most:.2f}")
        39.37 to 39.37
        """
        known = any(policy is one for one in self._controllers.values())
        result = policy.evaluation if known and isinstance(policy, PolicyGraph) else evaluate(self.model, policy)
        value = -math.inf if math.isnan(result.discounted_return) else result.discounted_return
        return max(self.lower - value, 0.0), max(self.upper - value, 0.0)

    @property
    def value(self) -> float:
        """Discounted return of the schedule or graph from the start, up to rounding; minus infinity where it has none.

        Where a search found value vectors, this is `lower`: what they prove about `policy`.
        """
        if self.search is not None:
            return self.lower
        value = self.evaluation.discounted_return
        return -math.inf if math.isnan(value) else value

    @property
    def gap(self) -> float:
        """Upper minus lower bound: how much better the optimum could be."""
        return self.upper - self.lower

    def explain(self, state: Belief | int | str | None = None) -> Explanation | BeliefExplanation:
        """Return the value of looking at each step of a plan or, at a belief, the values of all decisions.

        Parameters
        ----------
        state : int, str or Belief, optional
            The state that was seen, by number or name, or a belief; by default the start.

        Returns
        -------
        Explanation or BeliefExplanation
            Where looks are exact, the steps of the plan for a state. Given a `Belief`, and where looks are not exact, every
            decision that is allowed: its price, what it is worth, the chance of each outcome and what is decided then.

        Examples
        --------
        >>> import actmeasure as am
        >>> solution = am.solve(am.problems.two_state_belief(p=0.8, measuring_cost=0.05))
        >>> print(solution.explain())
        After seeing begin: a0, then look
        Worth 0.95 from here on.
        <BLANKLINE>
        step  action  belief before it  running  look now  not now  measuring value
        ----  ------  ----------------  -------  --------  -------  ---------------  -----
           1  a0      begin: 100 %        100 %    0.9500   0.8000          +0.1500  looks
        """
        if isinstance(state, Belief) or self.schedule is None:
            return explain_belief(self, state)
        return explain(self, state)

    def save_policy(self, path: str | os.PathLike[str], model_file: str | os.PathLike[str] | None = None) -> None:
        """Write value vectors in the XML format of SARSOP, such as `out.policy`, for the `.pomdp` file that `model.save` writes.

        Where looks are not exact and the method is `optimal`, these are the vectors of the search, otherwise the values of the
        nodes of the policy graph. Entries are the states of the `.pomdp` file, actions the numbers of its actions. A vector has
        the worst value that can be earned at all in states for which its plan was not made, so that it bounds the optimum from
        below in every belief.

        Parameters
        ----------
        path : str or path
        model_file : str or path, optional
            The `.pomdp` file of the model, whose name readers of the policy find in it; a file from elsewhere has the same states
            and actions in the same order. By default the policy's own name with the ending `.pomdp`.
        """
        from actmeasure.files.policy_xml import save_policy_xml

        vectors = self._node_vectors() if self.search is None else self.search.value_vectors()
        save_policy_xml(self.model, vectors, self.lower, worst_value(self.model), path, model_file)

    def _node_vectors(self) -> Iterator[tuple[Decision, npt.NDArray[np.int64], FloatArray]]:
        """Yield decision, states and values of the nodes of the policy graph, rounded downwards."""
        graph = self.policy_graph()
        result = evaluate(self.model, graph)
        for decision, values in zip(graph.decisions, result.node_values, strict=True):
            states = np.flatnonzero(np.isfinite(values))
            yield decision, states, values[states] - result.discounted_error

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row per plan: its state, the plan in words, steps, ending and value (needs the extra `data`).

        The index is the state's number; a plan for a start that is not shown has -1.
        """
        return solution_frame(self)

    def table(self, plans: int = 20, nodes: int | None = None) -> str:
        """Return value, bounds, looks and the first `plans` plans as text, as `print` does.

        With `nodes`, the steps of `policy_graph(nodes)` instead of the plans, and what it loses.
        """
        return solution_text(self, plans, nodes)

    def plot(self, path: str | os.PathLike[str] | None = None, shape: tuple[int, int] | None = None) -> Figure:
        """Draw a lake's plans as arrows, and where they look; a policy graph where looks are not exact (needs the extra `plots`).

        Parameters
        ----------
        path : str or path, optional
            Where to save the picture, such as `plans.png` or `plans.svg`.
        shape : (rows, columns), optional
            Of the lake; a square by default.
        """
        if self.schedule is None:
            return self.policy_graph(READABLE if self.graph is None else None).plot(self.model, path)
        from actmeasure.planning.plots import plot_lake

        return plot_lake(self, path, shape)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        if self.search is not None:
            size = f"{self.search.n_vectors:,} value vectors"
        else:
            size = f"{len(self.schedule)} states planned" if self.graph is None else f"{len(self.graph)} nodes"
        return f"Solution({self.method}: value {self.value:.6g}, optimum at most {self.upper:.6g}, {size}, {self.seconds:.2g} s)"


def worst_value(model: Model) -> float:
    """Return a lower bound on what any behaviour earns from any state; -1e250 where, without discount, there is none."""
    prices = [look.table(model.n_states, model.n_actions) for look in model.measurements]
    highest = np.max(prices, axis=0) if prices else np.zeros((model.n_states, model.n_actions))
    least = min(0.0, float((model.rewards - highest)[~model.terminal].min()))
    if model.discount < 1:
        return least / (1 - model.discount) * (1 + 1e-12)
    if least == 0:
        return 0.0
    return least * model.origin.periods * (1 + 1e-12) if isinstance(model.origin, Lifetime) else -1e250


# A solution as text and as a table.

#: Largest width of a plan in the text; in the schedule and `to_pandas` plans are complete.
PLAN_WIDTH = 90
#: Largest width of a step of a policy graph in the text.
STEP_WIDTH = 160
#: Pairs of node and state up to which a text tells how often the policy graph of a search looks.
SMALL_PAIRS = 20_000
#: Pairs of state and decision up to which a text shows a controller of few nodes in place of a large graph.
QUICK_PAIRS = 64
WITHOUT_END = (
    "Without discount this schedule loses without end, so it has no finite value; use the method 'optimal', or a discount "
    "below 1."
)


def _rows(solution: Solution, most: int | None = None) -> list[dict[str, Any]]:
    """Return a row for every plan of a solution, that of a hidden start first."""
    model, schedule = solution.model, solution.schedule
    rows = []
    if schedule.start is not None and not model.start_is_known:
        rows.append(_plan_row(model, None, schedule.start, solution.value))
    for number, (state, plan) in enumerate(schedule.items()):
        if most is not None and number >= most:
            break
        rows.append(_plan_row(model, state, plan, float(solution.values[state])))
    return rows


def _plan_row(model: Model, state: int | None, plan: BlindPlan, value: float) -> dict[str, Any]:
    return {
        "number": -1 if state is None else state,
        "state": "(start)" if state is None else model.state_name(state),
        "plan": plan.describe(model),
        "steps": len(plan),
        "ending": plan.then,
        "value": value,
    }


def solution_frame(solution: Solution) -> pd.DataFrame:
    """Return a table with a row per plan, or per node of the policy graph where looks are not exact."""
    if solution.schedule is None:
        return solution.policy_graph(READABLE if solution.graph is None else None).to_pandas(solution.model)
    pandas = import_extra("pandas", "Solution.to_pandas", "data")
    columns = ["number", "state", "plan", "steps", "ending", "value"]
    frame: pd.DataFrame = pandas.DataFrame(_rows(solution), columns=columns).set_index("number")
    return frame


def solution_text(solution: Solution, plans: int, nodes: int | None = None) -> str:
    """Return value and bounds of a solution and its first plans as text, or the steps of a controller of few nodes."""
    lines = name_value_lines(_facts(solution))
    for note in solution_notes(solution):
        lines += ["", note]
    if nodes is not None:
        return "\n".join([*lines, *_readable_lines(solution, nodes)])
    if solution.schedule is None:
        return "\n".join([*lines, *_graph_lines(solution, plans)])
    rows = _rows(solution, plans) if plans > 0 else []
    if rows:
        cells = [(row["state"], shortened(row["plan"], PLAN_WIDTH), f"{row['value']:.4f}") for row in rows]
        lines += ["", *text_table(("after seeing", "do", "value"), cells, "<<>")]
        more = len(solution.schedule) - len([row for row in rows if row["number"] >= 0])
        lines += [f"... and {more} more plans"] if more else []
    return "\n".join(lines)


def _graph_lines(solution: Solution, most: int) -> list[str]:
    """Return the steps of the policy graph in words; of one with few nodes, or how to ask for it, where a search has many."""
    if most <= 0:
        return []
    if solution.search is not None and (solution.graph is None or len(solution.graph) > most):
        if solution.model.n_states * solution.search.rows.n_decisions <= QUICK_PAIRS:
            return _readable_lines(solution, most)
        size = "very many" if solution.graph is None else f"{len(solution.graph):,}"
        return [
            "",
            f"The policy has {size} nodes. For a controller of few nodes, and what it loses: "
            f"solution.policy_graph(nodes={READABLE}), or actmeasure solve ... --nodes {READABLE}.",
        ]
    steps = solution.policy_graph().describe(solution.model).splitlines()
    more = [f"... and {len(steps) - most} more steps"] if len(steps) > most else []
    return ["", *(textwrap.shorten(step, STEP_WIDTH, placeholder=" ...") for step in steps[:most]), *more]


def _readable_lines(solution: Solution, nodes: int) -> list[str]:
    """Return the steps of a controller of few nodes, and what it loses against the optimum."""
    graph = solution.policy_graph(nodes)
    at_least, at_most = solution.loss(graph)
    share = f", {at_most / abs(solution.upper):.2%} of the bound" if solution.upper and math.isfinite(at_most) else ""
    value = f"{graph.evaluation.discounted_return:.6g}"
    loses = f"{at_least:.3g} to {at_most:.3g}" if at_least > 0 else f"at most {at_most:.3g}"
    size = counted(len(graph), "node")
    head = f"A controller of {size}, worth {value}; it loses {loses} against the optimum{share}:"
    return ["", head, "", *(shortened(step, STEP_WIDTH) for step in graph.describe(solution.model).splitlines())]


def _worth(graph: PolicyGraph) -> float:
    value = graph.evaluation.discounted_return
    return -math.inf if math.isnan(value) else value


def solution_notes(solution: Solution) -> Iterator[str]:
    """Yield sentences about a value that is not finite, and about why a gap is open."""
    if solution.value == -math.inf:
        yield WITHOUT_END
    if solution.merged and solution.graph is not None:
        yield (
            f"Too many beliefs come up to tell all of them apart: those that agree to within {solution.merged:g} are one node. "
            f"The value is exact for this graph of {len(solution.graph):,} nodes; with finer beliefs it may be higher or lower."
        )
    gain = "find better moments to look" if solution.method == "atm" else "close the gap"
    if reason := why_open(solution.stopped, solution.model.discount, gain):
        yield reason


def _facts(solution: Solution) -> Iterator[tuple[str, str]]:
    is_discounted = solution.model.discount < 1
    yield "method", f"{solution.method} ({solution.seconds:.2g} s)"
    exact = "exact" if solution.search is None else "at least"
    yield "value", f"{solution.value:.6g}  ({exact}, {'discounted' if is_discounted else 'without discount'})"
    if solution.claimed is not None:
        yield "claimed", f"{solution.claimed:.6g}  (what the method says its schedule is worth)"
    yield "optimum", _range(solution.lower, solution.upper)
    if solution.search is not None:
        yield "proof", f"{solution.search.n_vectors:,} value vectors, {solution.search.n_nodes:,} beliefs"
    if solution.method_upper is not None:
        yield f"best {solution.method!r}", _range(solution.value, max(solution.method_upper, solution.value))
    if solution.search is not None and not is_small(solution):
        return
    yield "looks", _looks(solution.evaluation, is_discounted)
    if len(solution.model.measurements) > 1:
        yield "by kind", _looks_by_kind(solution)
    can_end = bool(solution.model.terminal.any())
    yield "episode", _episode(solution.evaluation.steps, solution.evaluation.ending_probability if can_end else 0.0)


def is_small(solution: Solution) -> bool:
    """Return whether the policy graph of a search is small enough to be evaluated for a text."""
    return solution.graph is not None and len(solution.graph) * solution.model.n_states <= SMALL_PAIRS


def _range(lower: float, upper: float) -> str:
    return f"at most {upper:.6g}" if lower == -math.inf else f"{lower:.6g} to {upper:.6g}  (gap {upper - lower:.2g})"


def _looks(result: Evaluation, is_discounted: bool) -> str:
    is_finite = math.isfinite(result.measurements)
    count, per = (result.measurements, "episode") if is_finite else (result.average_measurements, "step")
    is_known = count is not None and math.isfinite(count)
    often = f"{count:.4g} per {per}" if is_known else "an unknown number, lost in rounding"
    return often + (f"  ({result.discounted_measurements:.4g} discounted)" if is_discounted else "")


def _looks_by_kind(solution: Solution) -> str:
    """Return the number of each measurement, per episode or per step as in `_looks`."""
    result = solution.evaluation
    per_step = None if math.isfinite(result.measurements) else result.average_looks
    counts = result.looks if per_step is None else per_step
    names = [shown(measurement.name) for measurement in solution.model.measurements]
    return ", ".join(f"{name} {count:.4g}" for name, count in zip(names, counts, strict=True))


def _episode(steps: float, ending: float) -> str:
    if math.isfinite(steps):
        return f"{steps:.4g} steps"
    if math.isnan(ending) or (math.isnan(steps) and ending == 1):
        return "lasts so long that its length is lost in rounding"
    return "never ends" if ending == 0 else f"ends with probability {ending:.4g}"
