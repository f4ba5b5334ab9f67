"""The commands `solve` and `tradeoff`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import (
    Json,
    Plot,
    TimeLimit,
    graph_json,
    model_json,
    picture_path,
    print_json,
    say,
    schedule_json,
)
from actmeasure.cli.problem_options import Cost, Discount, Problem, Settings, read_model, read_settings
from actmeasure.errors import PlanError
from actmeasure.progress import status_line

if TYPE_CHECKING:
    from actmeasure.model import Model
    from actmeasure.planning.frontier import BudgetPlan, Frontier, FrontierPiece
    from actmeasure.planning.solution import Solution
    from actmeasure.planning.tradeoff import TradeoffProgress
    from actmeasure.schedule import Schedule

__all__ = ["register"]

#: Methods, in the help of options.
METHOD_NAMES = (
    "optimal, atm, atm-qmdp, atm-linear, always, never, every-3 (any number), package.module:Name of your own"
)
#: Figures of an evaluation in the JSON of a solution, and the attributes that have them.
RESULTS = {
    "looks": "measurements", "discounted_looks": "discounted_measurements", "reward": "reward",
    "discounted_reward": "discounted_reward", "steps": "steps", "ending_probability": "ending_probability",
}  # fmt: skip
#: Most plans of a schedule that are listed.
PLANS_LISTED = 20
#: The method that has options of its own.
POMCP_METHOD = "pomcp"

Periods = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Plan for a life of N decisions and then over; without end unless told."),
]
Simulations = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: simulations for each decision, 25,000 unless told.")
]
Depth = Annotated[int | None, typer.Option(metavar="N", help="With pomcp: steps that it looks ahead, 25 unless told.")]
Episodes = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: episodes that are simulated, 100 unless told.")
]
Nodes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Print the best controller found with at most N nodes, and what it loses."),
]
Seed = Annotated[int | None, typer.Option(help="With pomcp: of the random numbers, 0 unless told.")]


RelativeTolerance = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Bounds may also differ by this share of the optimum; 0 unless told, and 0.001 where looks are not exact.",
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="Also show what every decision at the start is worth, what may be seen, and what follows."
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write value vectors in SARSOP's XML, for the .pomdp file of the model."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        epilog="Examples:  actmeasure solve frozen-lake  |  "
        "actmeasure solve frozen-lake --set size=8 --set variant=slippery --cost 0.01  |  "
        "actmeasure solve frozen-lake --set size=20 --set seed=3 --time-limit 10 --plot plans.png  |  "
        "actmeasure solve machine.json --method every-3 --json  |  actmeasure solve maintenance --periods 30  |  "
        "actmeasure solve tiger --nodes 5  |  "
        "actmeasure solve tiger --explain  |  actmeasure solve hallway.pomdp --time-limit 60 --policy hallway.policy  |  "
        "actmeasure solve frozen-lake --method pomcp --simulations 5000"
    )(solve)
    app.command(
        epilog="Examples:  actmeasure tradeoff measuring-value  |  actmeasure tradeoff frozen-lake --plot tradeoff.png  |  "
        "actmeasure tradeoff frozen-lake --budget 1.5  |  actmeasure tradeoff machine.json --time-limit 60 --json  |  "
        "actmeasure tradeoff inspection --measurement visual --time-limit 60"
    )(tradeoff)


# solve


def solve(
    problem: Problem,
    cost: Cost = None,
    discount: Discount = None,
    method: Annotated[str, typer.Option(help=f"{METHOD_NAMES}, or pomcp.")] = "optimal",
    tolerance: Annotated[float, typer.Option(help="How close the bounds on the optimum should come.")] = 1e-6,
    relative_tolerance: RelativeTolerance = None,
    time_limit: TimeLimit = None,
    periods: Periods = None,
    nodes: Nodes = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
    explain: Explain = False,
    policy: PolicyFile = None,
    simulations: Simulations = None,
    depth: Depth = None,
    episodes: Episodes = None,
    seed: Seed = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Also write what proves the bounds; python -m actmeasure.check_certificate checks it.",
        ),
    ] = None,
) -> None:
    """Plan what to do and when to look, and prove how good that is.

    The value is exact; the optimum lies between the bounds. For lakes --plot draws the plans on the map, for other models
    what a look is worth along the first plan. With --method pomcp decisions are planned by simulation as they come up, and
    what they earn is simulated.
    """
    given = read_settings(settings)
    options = _PomcpOptions(simulations, depth, episodes, seed)
    if method == POMCP_METHOD:
        _refuse_with_pomcp(nodes, plot, certificate, explain, policy, relative_tolerance)
        _solve_by_simulation(_read(problem, given, cost, discount, periods), options, time_limit, as_json)
        return
    options.refuse(method)
    model = _read(problem, given, cost, discount, periods)
    path = picture_path(plot)
    _check_certificate(model, certificate)
    if policy is not None:
        from actmeasure.file_access import check_writable

        check_writable(policy, "the policy", PlanError)
    from actmeasure.planning.solve import solve as solve_model

    with status_line() as show:
        solution = solve_model(
            model, method, tolerance, time_limit, lambda now: show(str(now)), relative_tolerance=relative_tolerance
        )
    if as_json:
        extra = {"explanation": _explanation_json(solution)} if explain else {}
        print_json({**_solution_json(solution, nodes), **extra})
    else:
        typer.echo(solution.table(nodes=nodes))
        if explain:
            typer.echo("")
            typer.echo(str(solution.explain(_first(solution.model))))
    if path is not None:
        _draw(solution, path, given, nodes)
        say(f"Picture: {path}")
    if certificate is not None:
        _certify(solution, certificate)
    if policy is not None:
        solution.save_policy(policy, problem if Path(problem).suffix == ".pomdp" else None)
        say(f"Policy: {policy}")


def _refuse_with_pomcp(
    nodes: int | None, plot: Path | None, certificate: Path | None, explain: bool, policy: Path | None, relative: float | None
) -> None:  # fmt: skip
    """Raise an error about an option that needs a plan, values or bounds, which POMCP does not have."""
    for is_given, what in (
        (nodes is not None, "makes no plans in advance, and has no controller; leave --nodes out"),
        (plot is not None, "makes no plans in advance that could be drawn; leave --plot out"),
        (certificate is not None, "proves no bounds; leave --certificate out"),
        (relative is not None, "proves no bounds; leave --relative-tolerance out"),
        (explain or policy is not None, "has no values in advance; leave --explain and --policy out"),
    ):
        if is_given:
            raise PlanError(f"pomcp {what}, or use another method")


def _check_certificate(model: Model, path: Path | None) -> None:
    """Raise an error about a certificate that cannot be made or written, before the plan is computed."""
    if path is None:
        return
    from actmeasure.file_access import path_of
    from actmeasure.planning.certificate import check_covered

    path_of(path, ".npz", PlanError)
    check_covered(model)


def _certify(solution: Solution, path: Path) -> None:
    """Write the certificate, and beside it the model, which the program that checks it reads."""
    from actmeasure.planning.certificate import certificate

    proof = certificate(solution)
    proof.save(path)
    model = path.with_suffix(".model.json")
    solution.model.save(model)
    say(f"Certificate: {path} ({proof.lower:.6g} <= optimum <= {proof.upper:.6g})")
    say(f"Check it with: python -m actmeasure.check_certificate {shlex.quote(str(model))} {shlex.quote(str(path))}")


def _read(
    problem: str, settings: Mapping[str, Any], cost: float | None, discount: float | None, periods: int | None
) -> Model:
    """Return the model of a problem, over a finite life if `periods` is given, which also allows a discount of 1."""
    if periods is None:
        return read_model(problem, settings, cost, discount)
    from actmeasure.model import lifetime

    return lifetime(read_model(problem, settings, cost, None), periods, discount=discount)


def _draw(solution: Solution, path: Path, settings: Mapping[str, Any], nodes: int | None) -> None:
    if nodes is not None:
        solution.policy_graph(nodes).plot(solution.model, path)
        return
    if solution.schedule is None:
        solution.plot(path)
        return
    shape = _lake_shape(solution.model, settings)
    if shape is not None:
        solution.plot(path, shape)
        return
    from actmeasure.planning.explain import explain

    explain(solution, _first(solution.model)).plot(path)


def _first(model: Model) -> int | None:
    """Return the first state in which an episode may begin, where it is shown, otherwise None."""
    return int(model.initial_states[0]) if model.start_is_known else None


def _explanation_json(solution: Solution) -> list[dict[str, Any]]:
    """Return every decision at the start, its price and bounds, and its outcomes with what is decided then."""
    from actmeasure.planning.explain_belief import explain_belief

    return [
        {
            "action": one.decision.action,
            "measurement": one.decision.measurement,
            "price": one.price,
            "lower": one.lower,
            "upper": one.upper,
            "measuring_value": one.measuring_value,
            "outcomes": [
                {
                    "name": outcome.name,
                    "probability": outcome.probability,
                    "then": None
                    if outcome.decision is None
                    else [outcome.decision.action, outcome.decision.measurement],
                }
                for outcome in one.outcomes
            ],
        }
        for one in explain_belief(solution, _first(solution.model)).decisions
    ]


def _lake_shape(model: Model, settings: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return rows and columns of a lake's map; None for other models, and for lakes from a file that cannot be a square."""
    from actmeasure.planning.plots import is_lake

    if not is_lake(model):
        return None
    if rows := settings.get("map"):
        return len(rows), len(rows[0])
    side = math.isqrt(model.n_states)
    return (side, side) if side * side == model.n_states else None


def _solution_json(solution: Solution, nodes: int | None) -> dict[str, Any]:
    from actmeasure.planning.solution import is_small, solution_notes

    # The policy graph of a search may be too large to be written, or evaluated, in a short time.
    is_large = solution.search is not None and not is_small(solution)
    result = None if is_large else solution.evaluation
    plans: dict[str, Any]
    if nodes is not None:
        graph = solution.policy_graph(nodes)
        plans = {
            "looks_by_kind": graph.evaluation.looks.tolist(),
            "graph": graph_json(solution.model, graph),
            "graph_value": graph.evaluation.discounted_return,
            "loss": solution.loss(graph),
        }
    elif result is None:
        plans = {"looks_by_kind": None, "graph": None}
    elif solution.schedule is None:
        plans = {"looks_by_kind": result.looks.tolist(), "graph": graph_json(solution.model, solution.policy_graph())}
    else:
        plans = schedule_json(solution.model, solution.schedule)
        for plan in plans["plans"]:
            plan["value"] = float(solution.values[plan["state"]])
    return {
        "method": solution.method,
        "value": solution.value,
        "lower": solution.lower,
        "upper": solution.upper,
        "gap": solution.gap,
        "stopped": solution.stopped,
        "notes": list(solution_notes(solution)),
        "claimed": solution.claimed,
        "method_upper": solution.method_upper,
        "seconds": solution.seconds,
        **{name: None if result is None else getattr(result, field) for name, field in RESULTS.items()},
        "model": model_json(solution.model),
        **plans,
    }


@dataclass(frozen=True)
class _PomcpOptions:
    """Options that are for pomcp alone; None where they are not given."""

    simulations: int | None
    depth: int | None
    episodes: int | None
    seed: int | None

    def refuse(self, method: str) -> None:
        """Raise an error if an option is given that does not go with another method."""
        for name, value in asdict(self).items():
            if value is not None:
                raise PlanError(f"--{name} is for --method {POMCP_METHOD}, but the method is {method!r}; leave it out")


def _solve_by_simulation(model: Model, options: _PomcpOptions, time_limit: float | None, as_json: bool) -> None:
    """Run POMCP in simulated episodes, and print its return."""
    from actmeasure.planning import POMCP
    from actmeasure.planning.pomcp import simulate
    from actmeasure.statistics import Interval
    from actmeasure.text import interval_text

    given = {name: value for name, value in asdict(options).items() if value is not None}
    episodes, seed = given.pop("episodes", 100), given.pop("seed", 0)
    planner = POMCP(model, **given)
    settings = {"simulations": planner.simulations, "depth": planner.depth}
    with status_line() as show:

        def progress(done: int, so_far: Interval) -> None:
            show(f"episode {done} of {episodes}, discounted return {interval_text(so_far)}")

        simulation = simulate(planner, episodes, seed, time_limit=time_limit, progress=progress)
    if as_json:
        print_json({"method": POMCP_METHOD, **settings, "seed": seed, **asdict(simulation), "model": model_json(model)})
    else:
        typer.echo(
            f"POMCP, {settings['simulations']:,} simulations a decision, depth {settings['depth']}\n\n{simulation}"
        )


# tradeoff


def tradeoff(
    problem: Problem,
    discount: Discount = None,
    method: Annotated[str, typer.Option(help=f"How each price is solved: {METHOD_NAMES}.")] = "optimal",
    tolerance: Annotated[float, typer.Option(help="How close the bounds should come at every price.")] = 1e-3,
    relative_tolerance: RelativeTolerance = None,
    time_limit: TimeLimit = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="LOOKS", help="Also show the best within this number of expected discounted looks."),
    ] = None,
    measurement: Annotated[
        str | None, typer.Option(metavar="NAME", help="Vary the price of this measurement only, on any model.")
    ] = None,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality", help="Show what better and worse instruments are worth instead of --measurement, and may cost."
        ),
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show the best schedules for every price of a look, and the price above which looking is never worth it.

    With --measurement, the optimum for every price of that measurement, with bounds from both sides.
    """
    if budget is not None and not 0 <= budget < math.inf:
        raise PlanError(f"budget is {budget:g}, expected a finite number of looks that is 0 or more")
    model = read_model(problem, read_settings(settings), discount=discount)
    if measurement is not None:
        if budget is not None or plot is not None:
            raise PlanError(
                "--budget and --plot are for the price of every look; leave them out, or leave --measurement out"
            )
        _tradeoff_of_measurement(
            model, measurement, quality, tolerance, relative_tolerance, time_limit, method, as_json
        )
        return
    if relative_tolerance is not None:
        raise PlanError("--relative-tolerance is that of one measurement; name it with --measurement")
    if quality:
        raise PlanError("--quality is that of one measurement; name it with --measurement")
    path = picture_path(plot)
    from actmeasure.planning.tradeoff import tradeoff as trade

    with status_line() as show:
        frontier = trade(model, tolerance, time_limit, lambda now: show(str(now)), method=method)
    allowed = None if budget is None else frontier.budget(budget)
    if as_json:
        print_json(_frontier_json(frontier, allowed))
    else:
        typer.echo(_frontier_text(frontier, allowed))
    if path is not None:
        frontier.plot(path)
        say(f"Picture: {path}")


def _tradeoff_of_measurement(
    model: Model,
    measurement: str,
    quality: bool,
    tolerance: float,
    relative: float | None,
    time_limit: float | None,
    method: str,
    as_json: bool,
) -> None:
    """Print the optimum over the price of one measurement, or what instruments of other qualities may cost."""
    from actmeasure.planning.measurement_tradeoff import MeasurementTradeoff
    from actmeasure.planning.tradeoff import tradeoff as trade

    with status_line() as show:

        def progress(now: TradeoffProgress) -> None:
            show(str(now))

        result = (
            trade(
                model, tolerance, time_limit, progress, method=method, measurement=measurement, quality=True,
                relative_tolerance=relative,
            )
            if quality
            else trade(
                model, tolerance, time_limit, progress, method=method, measurement=measurement, relative_tolerance=relative
            )
        )  # fmt: skip
    if not as_json:
        typer.echo(str(result))
        return
    shared = {
        "measurement": result.measurement, "tolerance": result.tolerance, "seconds": result.seconds, "stopped": result.stopped,
        "notes": [result.note] if result.note else [], "model": model_json(model),
    }  # fmt: skip
    if isinstance(result, MeasurementTradeoff):
        arrays = ("prices", "lower", "upper", "looks")
        curve = {name: getattr(result, name).tolist() for name in arrays}
        ends = {"without": list(result.without), "break_even": list(result.break_even), "gap": result.gap}
        print_json({**shared, **curve, **ends})
    else:
        print_json({**shared, "price": result.price, "points": [asdict(point) for point in result.points]})


def _frontier_text(frontier: Frontier, allowed: BudgetPlan | None) -> str:
    from actmeasure.text import text_table

    cells = [
        (
            f"{piece.low:.4g} to {piece.high:.4g}",
            *(f"{value:.4f}" for value in (piece.discounted_reward, piece.discounted_looks)),
            *(f"{value:.4g}" for value in (piece.reward, piece.measurements, piece.steps)),
        )
        for piece in frontier.pieces
    ]
    price = "price of a look" if _is_number(frontier.model) else "price (times the costs)"
    head = (price, "discounted: reward", _unit(frontier.model), "undiscounted: reward", "looks", "steps")
    lines = [*text_table(head, cells, "<>>>>>"), "", _break_even(*frontier.break_even), *_certainty(frontier)]
    return "\n".join(lines if allowed is None else [*lines, *_budget_lines(frontier.model, allowed)])


def _is_number(model: Model) -> bool:
    return isinstance(model.measuring_cost, float)


def _unit(model: Model) -> str:
    """Return the unit in which a schedule spends: looks or, where they cost differently, their cost at price 1."""
    return "looks" if _is_number(model) else "cost of looks"


def _break_even(low: float, high: float) -> str:
    from actmeasure.text import break_even_text

    return break_even_text(low, high)


def _certainty(frontier: Frontier) -> list[str]:
    """Return how much better any schedule could be and, where that is above the tolerance, why."""
    if frontier.closed:
        return [f"Nothing is better by more than {frontier.gap:.2g} at any price ({frontier.seconds:.2g} s)."]
    if math.isinf(frontier.gap):
        most = "How much better something could be is not known for every price"
    else:
        most = f"Nothing is better by more than {frontier.gap:.2g} at any price"
    return [f"{most}, above the tolerance of {frontier.tolerance:g} ({frontier.seconds:.2g} s).", frontier.note]


def _budget_lines(model: Model, allowed: BudgetPlan) -> list[str]:
    unit = _unit(model)
    lines = [
        "",
        f"Within {allowed.budget:g} discounted {unit}: reward {allowed.reward:.6g} (nothing better than {allowed.upper:.6g}) "
        f"with {allowed.looks:.4g} {unit}.",
    ]
    if len(allowed.pieces) > 1:
        lines.append(f"Toss a coin once, at the start: the first schedule with probability {allowed.probability:.4g}.")
    for number, piece in enumerate(allowed.pieces, start=1):
        lines += [
            "",
            f"Schedule {number} ({piece.discounted_looks:.4g} {unit}):",
            *_schedule_lines(model, piece.schedule),
        ]
    return lines


def _schedule_lines(model: Model, schedule: Schedule) -> list[str]:
    lines = [f"  {line}" for line in schedule.describe(model).splitlines()]
    more = len(lines) - PLANS_LISTED
    return lines[:PLANS_LISTED] + ([f"  ... and {more} more plans"] if more > 0 else [])


def _frontier_json(frontier: Frontier, allowed: BudgetPlan | None) -> dict[str, Any]:
    low, high = frontier.break_even
    data: dict[str, Any] = {
        "break_even": [low, high],
        "gap": frontier.gap,
        "tolerance": frontier.tolerance,
        "stopped": frontier.stopped,
        "notes": [frontier.note] if frontier.note else [],
        "seconds": frontier.seconds,
        "prices": frontier.prices.tolist(),
        "lower": frontier.lower.tolist(),
        "upper": frontier.upper.tolist(),
        "model": model_json(frontier.model),
        "pieces": [_piece_json(frontier.model, piece) for piece in frontier.pieces],
    }
    if allowed is not None:
        data["budget"] = {
            "looks_allowed": allowed.budget,
            "reward": allowed.reward,
            "looks": allowed.looks,
            "upper": allowed.upper,
            "probability_of_first": allowed.probability,
            "pieces": [frontier.pieces.index(piece) for piece in allowed.pieces],
        }
    return data


def _piece_json(model: Model, piece: FrontierPiece) -> dict[str, Any]:
    figures = ("low", "high", "discounted_reward", "discounted_looks", "reward", "measurements", "steps")
    return {
        **{name: getattr(piece, name) for name in figures},
        **schedule_json(model, piece.schedule),
    }
