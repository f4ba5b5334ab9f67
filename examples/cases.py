"""Five worked inspection cases: a plan, what usual rules cost beside it, and a page of each.

`python examples/cases.py sewer` prints the plan of one case; `--out DIR` writes its page. The cases are sewer, deck, crack, pumps
and screening; all prices are assumptions, which the plan and the page begin with.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import actmeasure as am
from actmeasure.inspection import write_page


class Case(NamedTuple):
    """A model with its units, the states that are failures, and what was assumed."""

    title: str
    model: am.Model
    failures: tuple[str, ...]
    currency: str
    period: str
    assumptions: tuple[str, ...]
    nodes: int = 12


def sewer() -> Case:
    """A sewer main of Breda that is not new, inspected with a camera that is one class off now and then, over 30 years."""
    exact = am.problems.sewer()
    right, off = 0.8, 0.1
    errors = right * np.eye(5) + off * (np.eye(5, k=1) + np.eye(5, k=-1))
    camera = am.Measurement.noisy(
        "camera", cost=100.0, outcomes=exact.state_names, with_actions=("nothing",),
        probabilities=errors / errors.sum(axis=1, keepdims=True),
    )  # fmt: skip
    model = am.Model.from_arrays(
        exact.transitions.dense(), exact.rewards, measurements=[camera], discount=exact.discount,
        initial=[0.0, 0.2, 0.4, 0.4, 0.0],
        state_names=exact.state_names, action_names=exact.action_names,
    )  # fmt: skip
    return Case(
        "Sewer main", am.lifetime(model, 60), ("severity 5",), "EUR", "half-year",
        ("a step of the published chain is half a year; the main is at severity 2 to 4 now, and given up after 30 years.",
         "an inspection costs 100 EUR, and reports each neighbouring class with a probability of some 10 %.",
         "a failure costs 100,000 EUR, and happens at severity 5 with 2 % a year; reaching severity 5 is counted as a failure."),
        nodes=60,
    )  # fmt: skip


def deck() -> Case:
    """A bridge deck over 30 years: a cheap look that errs, a radar, repair and replacement."""
    wait = [[0.93, 0.06, 0.01, 0.0], [0.0, 0.9, 0.09, 0.01], [0.0, 0.0, 0.92, 0.08], [0.0, 0.0, 0.0, 1.0]]
    repair = [[0.97, 0.03, 0.0, 0.0], [0.9, 0.08, 0.02, 0.0], [0.6, 0.3, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]]
    replace = [[0.99, 0.01, 0.0, 0.0]] * 4
    visual = am.Measurement.noisy(
        "visual", cost=2.0, outcomes=("clear", "spalling", "loose"), with_actions=("nothing",),
        probabilities=[[0.92, 0.07, 0.01], [0.3, 0.6, 0.1], [0.15, 0.45, 0.4], [0.0, 0.05, 0.95]],
    )  # fmt: skip
    radar = am.Measurement.detection(
        "radar", cost=8.0, pod=[0.02, 0.25, 0.92, 1.0], outcomes=("no delamination", "delamination"),
        with_actions=("nothing",),
    )  # fmt: skip
    prices = np.array([[0.0, 60.0, 400.0], [0.0, 80.0, 400.0], [10.0, 140.0, 400.0], [300.0, 300.0, 600.0]])
    model = am.Model.from_arrays(
        np.stack([wait, repair, replace], axis=1), -prices, measurements=[visual, radar], discount=0.96,
        initial=[0.9, 0.1, 0.0, 0.0], state_names=("sound", "spalled", "delaminated", "failed"),
        action_names=("nothing", "repair", "replace"),
    )  # fmt: skip
    return Case(
        "Bridge deck", am.lifetime(model, 30), ("failed",), "kEUR", "year",
        ("all transition probabilities, and how often the visual inspection and the radar err, are made up for this example.",
         "a visual inspection costs 2 kEUR, a radar survey 8, a repair 60 to 140, a new deck 400, a failed deck 300 a year."),
        nodes=40,
    )  # fmt: skip


def crack() -> Case:
    """A fatigue crack over 30 years, after IMP-MARL."""
    model = am.problems.crack_life(failure_price=500.0, samples=200_000)
    failed = tuple(f"age {age}: failed" for age in range(31))
    return Case(
        "Fatigue crack", model, failed, "", "year",
        ("prices are those of IMP-MARL in units of an inspection: a repair 20; but a failure 500 instead of 10,000.",
         "a crack is detected with the probability 1 - exp(-d / 8 mm); transitions are counted from 200,000 simulated cracks."),
        nodes=30,
    )  # fmt: skip


def pumps() -> Case:
    """Two pumps of which one has to run: vibration is measured, pumps are overhauled."""
    wear = np.array([[0.94, 0.06, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
    renew = np.array([[0.98, 0.02, 0.0]] * 3)
    vibration = am.Measurement.noisy(
        "vibration", cost=0.2, outcomes=("smooth", "rough", "dead"), with_actions=("run",),
        probabilities=[[0.9, 0.1, 0.0], [0.25, 0.73, 0.02], [0.0, 0.02, 0.98]],
    )  # fmt: skip
    pump = am.Component(
        {"run": wear, "overhaul": renew}, costs={"overhaul": 8.0}, start=[1.0, 0.0, 0.0], measurements=[vibration],
        state_names=("good", "worn", "dead"),
    )  # fmt: skip
    model = am.system([pump, pump], penalty=lambda states: 120.0 * (states == (2, 2)), mobilisation=1.0, discount=0.95)
    return Case(
        "Pump pair", model, ("dead + dead",), "kEUR", "month",
        ("both pumps wear alike, and independently of each other.",
         "a measurement costs 0.2 kEUR, an overhaul 8, a visit 1 once a month, and a month without any pump 120."),
        nodes=24,
    )  # fmt: skip


def screening() -> Case:
    """Screening from the age of 50 to 80: a test that errs, an exact examination, and treatment."""
    wait = [[0.985, 0.015, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]]
    treat = [[0.985, 0.015, 0.0], [0.9, 0.05, 0.05], [0.35, 0.0, 0.65]]
    test = am.Measurement.detection(
        "test", cost=0.5, pod=[0.06, 0.75, 0.95], outcomes=("negative", "positive"), with_actions=("wait",)
    )
    exam = am.Measurement.noisy(
        "examination", cost=4.0, outcomes=("healthy", "early", "late"), probabilities=np.eye(3), with_actions=("wait",)
    )
    burden = np.array([[0.0, 60.0], [3.0, 63.0], [120.0, 180.0]])
    model = am.Model.from_arrays(
        np.stack([wait, treat], axis=1), -burden, measurements=[test, exam], discount=0.97, initial=[0.99, 0.01, 0.0],
        state_names=("healthy", "early", "late"), action_names=("wait", "treat"),
    )  # fmt: skip
    return Case(
        "Screening test", am.lifetime(model, 30), ("late",), "days of health", "year",
        ("this is no medical advice: all probabilities and burdens are made up, and other causes of death are left out.",
         "a test costs half a day of health, an examination 4, a treatment 60, a year with the late disease 120."),
        nodes=40,
    )  # fmt: skip


CASES: dict[str, Callable[[], Case]] = {
    "sewer": sewer, "deck": deck, "crack": crack, "pumps": pumps, "screening": screening,
}  # fmt: skip


def main() -> None:
    """Print the plans of the cases that are named, and write their pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="|".join(CASES), help="which cases; screening by default")
    parser.add_argument("--out", type=Path, help="folder for the pages")
    parser.add_argument("--seconds", type=float, default=45.0, help="time limit of each (default 45)")
    given = parser.parse_args()
    unknown = [name for name in given.cases if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; the cases are {', '.join(CASES)}")
    for name in given.cases or ["screening"]:
        case = CASES[name]()
        advice = am.inspection.advise(
            case.model, failures=case.failures, currency=case.currency, period=case.period, title=case.title,
            nodes=case.nodes, time_limit=given.seconds, assumptions=case.assumptions,
        )  # fmt: skip
        print(advice, end="\n\n")
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            write_page(advice, given.out / f"{name}.html")
            print(f"Page: {given.out / name}.html", file=sys.stderr)


if __name__ == "__main__":
    main()
