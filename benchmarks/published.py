"""Inspection problems beside what was published for them: what usual rules cost, and the plan with its bounds.

`python -m benchmarks.published crack` prints a fatigue crack over 30 years for three prices of a failure: the best calendar
rules, the best threshold on the believed probability of failure, and the plan. `python -m benchmarks.published again` prints what
the plan does after a detection, for several prices of a repair: inspect again, or repair. `python -m benchmarks.published n2 n3
n4 hard` prints the k-out-of-n systems. Without a name all parts are printed.
`--seconds 60` is the time limit of each search; half a minute to two minutes per part with the default.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import actmeasure as am
from actmeasure.inspection.imperfect_rules import ComparedRule, compared, course
from actmeasure.model.transitions import FloatArray
from actmeasure.policy_graph import PolicyGraph, bind, trace_pairs
from actmeasure.problems.fatigue import BINS, FAILED
from actmeasure.text import text_table

__all__ = ["crack_rows", "decisions_after_detection", "system_rows"]

#: Years of a life, and those after which the probability of failure was published.
LIFE, YEARS = 30, (10, 20, 30)
#: P(failed) of a weld that is left alone, after these years; a million simulated cracks.
UNTOUCHED = (0.0039829, 0.0265537, 0.063436)


class CrackFigures(NamedTuple):
    """Costs from another simulation of a million cracks, and bounds on the optimum of a prototype in 60 s and of SARSOP."""

    kept: float
    restarted: float
    prototype: str
    sarsop: str


CRACK = {
    10_000: CrackFigures(22.690, 21.827, "18.98-19.24", "10.2-19.7"),
    2_000: CrackFigures(14.545, 14.213, "12.38-12.557", "6.8-12.8"),
    500: CrackFigures(8.391, 8.397, "7.5637-7.5638", "4.8-7.57"),
}


class SystemFigures(NamedTuple):
    """Bounds on the optimal cost as published (SARSOP; six hours for the hard ones)."""

    n: int
    k: int
    hard: bool
    published: str


SYSTEMS = {
    "n2": [SystemFigures(2, 1, False, "53.3987-53.7203"), SystemFigures(2, 2, False, "193.398-193.466")],
    "n3": [
        SystemFigures(3, 1, False, "40.4709-46.7027"),
        SystemFigures(3, 2, False, "127.23-145.059"),
        SystemFigures(3, 3, False, "410.911-424.166"),
    ],
    "n4": [
        SystemFigures(4, 1, False, "28.52-34.71"),
        SystemFigures(4, 2, False, "81.24-102.43"),
        SystemFigures(4, 3, False, "203.1-233.3"),
        SystemFigures(4, 4, False, "510.5-561.0"),
    ],
    "hard": [
        SystemFigures(4, 1, True, "43.67-51.82"),
        SystemFigures(4, 2, True, "113.2-141.8"),
        SystemFigures(4, 3, True, "272.8-309.1"),
        SystemFigures(4, 4, True, "727.4-755.5"),
    ],
}
#: Rules that the crack's plan is compared with.
KINDS = ("calendar-kept", "calendar-restarted", "threshold")
#: Prices of a repair, and the price of a failure, for which decisions after a detection are counted.
REPAIRS, FAILURE_AGAIN = (2.0, 5.0, 20.0, 60.0), 2_000
#: Nodes of the readable plan.
NODES = 30


def failed_classes() -> FloatArray:
    """Return which states of the crack's yearly model are failures, bool, shape (S,)."""
    return np.tile(np.arange(BINS) == FAILED, LIFE + 1)


def untouched() -> FloatArray:
    """Return the probability that a weld that is left alone has failed after `YEARS`, shape (3,)."""
    model = am.problems.crack_life()
    wait = am.PolicyGraph([am.Decision(0)], [{None: 0}])
    failures = course(model, wait, LIFE, failed_classes()).failures
    assert failures is not None
    return np.asarray(np.cumsum(failures)[np.array(YEARS) - 1])


class CrackResult(NamedTuple):
    """The rules and the plan for one price of a failure."""

    rules: list[ComparedRule]
    solution: am.Solution
    graph: PolicyGraph
    seconds: float


def crack_rows(price: float, seconds: float) -> CrackResult:
    """Return the best rules, the plan and its readable graph for a price of a failure."""
    model = am.problems.crack_life(price)
    rules, _ = compared(model, 0, failed_classes(), kinds=KINDS, period="year")
    begun = time.process_time()
    solution = am.solve(model, time_limit=seconds)
    spent = time.process_time() - begun
    return CrackResult(rules, solution, solution.policy_graph(nodes=NODES), spent)


def decisions_after_detection(model: am.Model, graph: PolicyGraph, outcome: int = 1) -> dict[str, float]:
    """Return the expected number of detections over the life that are followed by an inspection, a repair or waiting."""
    bound = bind(graph, model)
    pairs = trace_pairs(model, bound)
    occupancy, now = np.zeros_like(pairs.start), pairs.start
    for _ in range(LIFE):
        occupancy, now = occupancy + now, np.asarray(pairs.moves.T @ now)
    found = {"inspection": 0.0, "repair": 0.0, "waiting": 0.0}
    law = model.measurements[0].law
    assert law is not None
    moves = pairs.moves.tocoo()
    flows = occupancy[moves.coords[0]] * moves.data
    source, target = pairs.nodes[moves.coords[0]], pairs.nodes[moves.coords[1]]
    detection = law.of_action(0, model.n_states)[:, [outcome]].toarray().ravel()[pairs.states[moves.coords[1]]]
    for node in np.flatnonzero(bound.measurements > 0).tolist():
        after, others = int(bound.targets[node][outcome]), np.delete(bound.targets[node], outcome)
        taken = (source == node) & (target == after)
        # Where another outcome leads to the same node, the moves there are those of both.
        share = detection[taken] if after in others.tolist() else 1.0
        looks, acts = bound.measurements[after] > 0, bound.actions[after] > 0
        found["inspection" if looks else "repair" if acts else "waiting"] += float((flows[taken] * share).sum())
    return found


def print_crack(seconds: float) -> None:
    """Print the part on the crack."""
    print(f"A fatigue crack over {LIFE} years, from a million simulated cracks; at most {seconds:g} s for each plan\n")
    head = ["P(failed), untouched, after", *(f"{year} years" for year in YEARS)]
    rows = [["published", *(f"{p:.7f}" for p in UNTOUCHED)], ["ours", *(f"{p:.7f}" for p in untouched())]]
    print("\n".join(text_table(head, rows, "<>>>")))
    for price, figures in CRACK.items():
        model = am.problems.crack_life(price)
        rules, solution, graph, spent = crack_rows(price, seconds)
        published = {"calendar-kept": f"{figures.kept:.3f}", "calendar-restarted": f"{figures.restarted:.3f}"}
        table = [
            [
                rule.name,
                published.get(rule.key, ""),
                f"{-rule.value:.3f}",
                f"{rule.evaluation.looks[0]:.2f}",
                f"{rule.failures.reward:.5f}" if rule.failures else "",
                str(rule.interval) if rule.interval else f"above {rule.thresholds[0]:.2g}",
            ]
            for rule in rules
        ]
        failures = course(model, graph, LIFE, failed_classes()).failures
        assert failures is not None
        table.append(
            [f"plan as a graph of {len(graph)} nodes", "", f"{-graph.evaluation.discounted_return:.3f}",
             f"{graph.evaluation.looks[0]:.2f}", f"{failures.sum():.5f}", "by what was seen"]
        )  # fmt: skip
        table.append(["plan, at most", figures.prototype, f"{-solution.lower:.3f}", "", "", f"{spent:.0f} s of CPU"])
        table.append(["no plan costs less than", f"SARSOP {figures.sarsop}", f"{-solution.upper:.3f}", "", "", ""])
        print(f"\nFailure {price:,}")
        head = ["", "published", "ours", "inspections", "failures", "inspected every ... years"]
        print("\n".join(text_table(head, table, "<>>>><")), flush=True)


def print_again(seconds: float) -> None:
    """Print what plans do after a detection, for several prices of a repair."""
    rows = []
    for repair in REPAIRS:
        model = am.problems.crack_life(FAILURE_AGAIN, repair=repair)
        graph = am.solve(model, time_limit=seconds).policy_graph(nodes=NODES)
        after = decisions_after_detection(model, graph)
        detections = sum(after.values())
        share = f"{after['inspection'] / detections:.0%}" if detections else "none inspected"
        rows.append(
            [
                f"{repair:g}",
                f"{-graph.evaluation.discounted_return:.3f}",
                *(f"{after[what]:.3f}" for what in after),
                share,
            ]
        )
    print(
        f"\nDetections over {LIFE} years under the plan (as a graph), by what follows; failure {FAILURE_AGAIN:,}, inspection 1\n"
    )
    print(
        "\n".join(text_table(["repair", "cost", "inspected again", "repaired", "left", "again"], rows, ">>>>>>")),
        flush=True,
    )


def system_rows(name: str, seconds: float) -> list[list[str]]:
    """Return the table of a part of the k-out-of-n systems: instance, published, ours, gap and seconds of CPU."""
    rows = []
    for figures in SYSTEMS[name]:
        model = am.problems.k_out_of_n(figures.n, figures.k, figures.hard)
        begun = time.process_time()
        found = am.solve(model, tolerance=1e-9, relative_tolerance=1e-4, time_limit=seconds)
        spent = time.process_time() - begun
        gap = 100 * found.gap / abs(found.upper)
        rows.append(
            [f"{'hard, ' if figures.hard else ''}{figures.k} of {figures.n}", figures.published,
             f"{-found.upper:.3f}-{-found.lower:.3f}", f"{gap:.3f} %", f"{spent:.1f}"]
        )  # fmt: skip
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the parts that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="crack|again|n2|n3|n4|hard", help="what to print; all by default")
    parser.add_argument("--seconds", type=float, default=15.0, help="time limit of each search (default 15)")
    given = parser.parse_args(arguments)
    parts = given.parts or ["crack", "again", *SYSTEMS]
    unknown = set(parts) - {"crack", "again", *SYSTEMS}
    if unknown:
        parser.error(f"there is no part {sorted(unknown)[0]!r}; the parts are crack, again, {', '.join(SYSTEMS)}")
    am.solve(am.problems.tiger())  # compiles
    if "crack" in parts:
        print_crack(given.seconds)
    if "again" in parts:
        print_again(given.seconds)
    rows = [row for name in SYSTEMS if name in parts for row in system_rows(name, given.seconds)]
    if rows:
        print(f"\nk-out-of-n systems, bounds on the optimal cost; at most {given.seconds:g} s each\n")
        head = ["works while", "published (SARSOP)", "ours", "gap", "seconds of CPU"]
        print("\n".join(text_table(head, rows, "<>>>>")))


if __name__ == "__main__":
    main()
