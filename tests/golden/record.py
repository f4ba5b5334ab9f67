"""Record golden values: what this version computes, against which `test_golden_values.py` compares every later one.

`python tests/golden/record.py` computes everything below, and writes `values.json` and the files beside it. Do that only where
a change of behaviour is meant, and say in the commit which values changed and why. `--values` writes `values.json` alone, so
that the files stay those of the version that wrote them. `--new` only adds what is not recorded yet: values
and files of a new problem, agent, method or file format. Only public names of the library are used, so that modules can move.

How numbers are written, which is also how they are compared:

- `0x1.8p+0` (`float.hex`), whole numbers, flags, words and `sha256:...` (of arrays or plans) are compared exactly. That is
  everything made by this library's own kernels and by plain arithmetic in a fixed order: episodes, decisions and values of
  POMCP, schedules, tables of transition probabilities, contents of files.
- `~0x1.8p+0` is compared exactly on a machine and with libraries like those of the recording (`recorded_with`), elsewhere with
  a tolerance of 1e-12, relative and absolute. These numbers pass through SciPy's sparse LU decomposition or through BLAS (`@`
  of dense arrays), whose last bit depends on the type of the processor: bounds, values and evaluations of schedules,
  explanations, frontiers, advice; or through special functions of SciPy, `exp` and `log`: intervals of statistics.
- `~~0x1.8p+0` likewise, with a tolerance of 1e-8: what comes of many iterations whose roundings add up (fitting to records, and
  advice on such a fit).
- `~sha256:...` of an array of such numbers is compared only where the machine and libraries are like those of the recording.

Not recorded, because they depend on the clock: `Solution.seconds` and `Solution.record`; and `optimal` where the search takes
longer than its head start of one second, after which act-then-measure joins it: all searches here close in a fraction of that.
Wording (notes, warnings, explanations as text) is not recorded either.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import actmeasure as am

FOLDER = Path(__file__).parent
VALUES = FOLDER / "values.json"
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "pyarrow")
#: Hexadecimal digits of a digest that are kept.
DIGITS = 20
#: Key of `values.json` with the parts, as (section, case, key), that were added on other machines: compared within a tolerance.
ELSEWHERE = "recorded_elsewhere"
#: Tolerances of numbers that are not compared exactly on other machines, by their prefix.
TOLERANCES = {"~~": 1e-8, "~": 1e-12}

# --- how values are written -------------------------------------------------------------------------------------------


def exact(number: float | None) -> str | None:
    """A number to the last bit, as `float.hex` writes it but without zeros at the end of the mantissa."""
    return None if number is None else re.sub(r"\.?0*p", "p", float(number).hex())


def rounded(number: float | None, prefix: str = "~") -> str | None:
    """A number whose last bits depend on the processor's type."""
    return None if number is None else f"{prefix}{exact(number)}"


def each(numbers: Any, write: Callable[[float], Any] = rounded) -> list[Any]:
    """All numbers of an array, in the order of its entries."""
    return [write(number) for number in np.asarray(numbers, dtype=np.float64).ravel()]


def digest(*arrays: Any) -> str:
    """The beginning of the SHA-256 of arrays: their types, shapes and bytes."""
    sha = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        little = array.astype(array.dtype.newbyteorder("<"))
        sha.update(f"{little.dtype.str}{little.shape}".encode() + little.tobytes())
    return f"sha256:{sha.hexdigest()[:DIGITS]}"


def text_digest(text: str) -> str:
    """The beginning of the SHA-256 of a text."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"


def plan_text(plan: am.BlindPlan | None) -> str | None:
    """A plan such as `1 1 0 measure`."""
    return (
        None
        if plan is None
        else " ".join([*map(str, plan.actions), plan.then, *[str(plan.repeat)] * (plan.repeat > 0)])
    )


def schedule_data(schedule: am.Schedule, shown: int = 3) -> dict[str, Any]:
    """A digest of all plans, how many there are, and the first ones."""
    plans = {str(state): plan_text(plan) for state, plan in schedule.items()}
    text = json.dumps([schedule.n_states, plan_text(schedule.start), plans])
    first = {state: (plan or "")[:60] for state, plan in list(plans.items())[:shown]}
    data: dict[str, Any] = {"plans": len(plans), "all": text_digest(text)}
    data |= {"first": first} if first else {}
    return data if schedule.start is None else data | {"start": plan_text(schedule.start)}


def evaluation_data(result: am.Evaluation) -> dict[str, Any]:
    """All fields of an evaluation."""
    names = (
        "discounted_return", "discounted_error", "discounted_reward", "discounted_measurements", "scalarized_return", "reward",
        "measurements", "steps", "ending_probability", "average_return", "average_reward", "average_measurements",
    )  # fmt: skip
    numbers: dict[str, Any] = {name: rounded(getattr(result, name)) for name in names}
    numbers = {name: number for name, number in numbers.items() if number is not None}
    return numbers | {"horizon": result.horizon, "values": "~" + digest(result.values)}


def episodes_data(episodes: am.Episodes) -> str:
    """A digest of all arrays of episodes."""
    return digest(
        episodes.scalarized_return, episodes.reward, episodes.measurements, episodes.steps, episodes.terminated
    )


def numbers_in(data: Any, path: str = "") -> dict[str, Any]:
    """All numbers and flags of nested plain data by their path; text is left out, as its wording may change."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, Mapping):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    elif data is not None and not isinstance(data, str):
        return {path: rounded(data) if isinstance(data, float) else data}
    found: dict[str, Any] = {}
    for name, value in items:
        found |= numbers_in(value, f"{path}/{name}")
    return found


# --- problems ---------------------------------------------------------------------------------------------------------

#: Every problem with settings that make it small, and discounts for which it is defined and closes fast.
SMALL: dict[str, tuple[str, dict[str, Any], tuple[float, ...]]] = {
    "measuring-value": ("measuring-value", {}, (0.95, 0.8, 1.0)),
    "frozen-lake": ("frozen-lake", {"size": 4}, (0.95, 0.8)),
    "frozen-lake deterministic": ("frozen-lake", {"size": 4, "variant": "deterministic"}, (0.95, 1.0)),
    "frozen-lake slippery": ("frozen-lake", {"size": 4, "variant": "slippery"}, (0.8,)),
    "frozen-lake drawn": ("frozen-lake", {"size": 5, "seed": 2}, (0.9,)),
    "most-likely-successor": ("most-likely-successor", {"successors": 4}, (0.95, 0.8, 1.0)),
    "two-state-belief": ("two-state-belief", {}, (0.95, 1.0)),
    "tight-bound": ("tight-bound", {}, (0.95, 0.8)),
    "chain": ("chain", {"n": 6}, (0.95, 0.8, 1.0)),
    "maintenance": ("maintenance", {}, (0.95, 0.8)),
    "sepsis": ("sepsis", {}, (0.95,)),
    "snake-maze": ("snake-maze", {"width": 4, "height": 3}, (0.95, 1.0)),
    "drone": ("drone", {"size": 5, "width": 3, "top_speed": 1}, (0.5,)),
    "sewer": ("sewer", {}, (0.95,)),
    "fatigue-crack": ("fatigue-crack", {"years": 6, "samples": 2000}, (0.95, 1.0)),
    "inventory": ("inventory", {}, (0.8, 0.5)),
}
#: Problems whose tables come of `exp`, of random normal numbers or of dense products.
ROUNDED_TABLES = ("drone", "sepsis", "sewer", "fatigue-crack", "maintenance")
#: In addition to all of `am.planners.METHODS`.
CALENDARS = ("every-2", "every-3")
#: Methods whose schedules are also evaluated over a few steps, and at all discounts.
EVALUATED_FURTHER = ("optimal", "atm-qmdp", "never", "every-2")
TOLERANCE = 1e-3
HORIZON = 7


def hidden_start() -> am.Model:
    """A model whose start is one of two states and not shown."""
    return am.problems.chain(n=6).replace(initial=[0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0], reveal_start=False)


def cost_table() -> am.Model:
    """A machine for which looking costs differently by state and action."""
    return machine(measuring_cost=[[40.0, 10.0], [30.0, 20.0], [0.0, 5.0]])


def machine(**changes: Any) -> am.Model:
    """Good, worn or broken; it can be run or repaired, and everything costs."""
    P = np.zeros((3, 2, 3))
    P[0, 0], P[1, 0], P[2, 0] = [0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]
    P[:, 1, 0] = 1.0
    R = np.array([[0.0, -500.0], [-20.0, -500.0], [-400.0, -900.0]])
    settings = {
        "measuring_cost": 40.0,
        "discount": 0.9,
        "state_names": ("good", "worn", "broken"),
        "action_names": ("run", "repair"),
    }
    return am.Model.from_arrays(P, R, **(settings | changes))  # type: ignore[arg-type]


#: Models that are no problem of the library.
OWN = {"hidden start": hidden_start, "cost table": cost_table}


@cache
def problem(name: str) -> am.Model:
    if name in OWN:
        return OWN[name]()
    problem_name, settings, _ = SMALL[name]
    return am.problems.make(problem_name, **settings)


@cache
def solved(name: str, discount: float, method: str) -> am.Solution:
    return am.solve(problem(name).replace(discount=discount), method, tolerance=TOLERANCE)


def model_data(name: str) -> dict[str, Any]:
    model = problem(name)
    table = model.transitions
    prefix = "~" if name in ROUNDED_TABLES else ""
    paid = np.zeros(0) if model.transition_rewards is None else model.transition_rewards
    return {
        "states": model.n_states,
        "actions": model.n_actions,
        "successors": digest(table.offsets, table.successors),
        "probabilities": prefix + digest(table.probabilities),
        "rewards": prefix + digest(model.rewards, paid),
        "prices": digest(model.measuring_costs),
        "start": digest(model.initial_distribution),
        "terminal": digest(model.terminal),
        "names": text_digest(json.dumps([model.state_names, model.action_names])),
        "discount": exact(model.discount),
        "start shown": model.reveal_start,
    }


def methods() -> tuple[str, ...]:
    return (*am.planners.METHODS, *CALENDARS)


def planning_cases() -> list[tuple[str, float]]:
    small = [(name, discount) for name, (_, _, discounts) in SMALL.items() for discount in discounts]
    return small + [(name, problem(name).discount) for name in OWN]


def solution_data(name: str, discount: float) -> dict[str, Any]:
    """Bounds and schedule of every method."""
    found = {}
    for method in methods():
        solution = solved(name, discount, method)
        data = {
            "lower": rounded(solution.lower),
            "upper": rounded(solution.upper),
            "value": rounded(solution.value),
            "claimed": rounded(solution.claimed),
            "method_upper": rounded(solution.method_upper),
            "stopped": solution.stopped,
            "values": "~" + digest(solution.values),
            "schedule": schedule_data(solution.schedule, 3 if method in ("optimal", "atm") else 0),
        }
        found[method] = {key: value for key, value in data.items() if value is not None}
    return found


def evaluations(name: str, discount: float) -> dict[str, Any]:
    """Of every method's schedule, over all time, at the first of the discounts; of some at all, and over a few steps."""
    model, found = problem(name).replace(discount=discount), {}
    is_first = discount == planning_discount(name)
    for method in methods() if is_first else EVALUATED_FURTHER:
        schedule = solved(name, discount, method).schedule
        found[method] = evaluation_data(am.evaluate(model, schedule))
        if is_first and method in EVALUATED_FURTHER:
            found[f"{method}, {HORIZON} steps"] = evaluation_data(am.evaluate(model, schedule, horizon=HORIZON))
    return found


def planning_discount(name: str) -> float:
    return problem(name).discount if name in OWN else SMALL[name][2][0]


def evaluation_of_a_function() -> dict[str, Any]:
    """A policy that is a function of the belief: look as soon as the state is unsure."""
    model = problem("frozen-lake")
    best = am.q_mdp(model).argmax(axis=1)

    def policy(belief: am.Belief) -> am.Decision:
        likely = int(belief.states[int(np.argmax(belief.probabilities))])
        return am.Decision(int(best[likely]), bool(len(belief.states) > 2))

    return {
        "over all time": evaluation_data(am.evaluate(model, policy)),
        f"{HORIZON} steps": evaluation_data(am.evaluate(model, policy, horizon=HORIZON)),
    }


def q_mdp_data() -> dict[str, Any]:
    return {name: each(am.q_mdp(problem(name))) for name in ("chain", "cost table", "inventory")}


EXPLAINED = ("measuring-value", "frozen-lake", "maintenance", "inventory", "hidden start", "cost table")


def explanations(name: str) -> dict[str, Any]:
    """Beliefs and values of looking, step by step, after the start and after some states."""
    found = {}
    for method in ("optimal", "never"):
        solution = solved(name, planning_discount(name), method)
        for state in (None, *list(solution.schedule)[:2]):
            explanation = solution.explain(state)
            found[f"{method}, {'start' if state is None else state}"] = {
                "value": rounded(explanation.value),
                "plan": plan_text(explanation.plan),
                "steps": [
                    [
                        step.step, step.action, step.looks, each(step.belief.states, int), each(step.belief.probabilities),
                        rounded(step.running), rounded(step.looking), rounded(step.waiting),
                    ]
                    for step in explanation.steps[:4]
                ],
            }  # fmt: skip
    return found


# --- frontiers --------------------------------------------------------------------------------------------------------

TRADED = ("measuring-value", "inventory", "cost table")


@cache
def frontier(name: str) -> am.Frontier:
    return am.tradeoff(problem(name), tolerance=1e-3 if name != "cost table" else 1.0)


def frontier_data(found: am.Frontier) -> dict[str, Any]:
    budgets = {}
    for looks in (0.0, 0.5, 2.0):
        plan = found.budget(looks)
        numbers = (plan.probability, plan.reward, plan.looks, plan.upper)
        budgets[str(looks)] = [
            *map(rounded, numbers),
            [schedule_data(piece.schedule, 0)["all"] for piece in plan.pieces],
        ]
    return {
        "prices": each(found.prices),
        "lower": each(found.lower),
        "upper": each(found.upper),
        "gap": rounded(found.gap),
        "break_even": each(found.break_even),
        "stopped": found.stopped,
        "pieces": [
            {
                "low": rounded(piece.low),
                "high": rounded(piece.high),
                "looks": rounded(piece.discounted_looks),
                "schedule": schedule_data(piece.schedule),
                "evaluation": evaluation_data(piece.evaluation),
            }
            for piece in found.pieces
        ],
        "budgets": budgets,
    }


# --- planning by simulation -------------------------------------------------------------------------------------------

SIMULATED: dict[str, dict[str, Any]] = {
    "frozen-lake, blind": {
        "name": "frozen-lake",
        "rollout": "blind",
        "exploration": 1.0,
        "clamp": True,
        "share": False,
    },
    "frozen-lake, looking": {"name": "frozen-lake", "rollout": "looking", "exploration": 1.0, "share": True},
    "maintenance, random": {"name": "maintenance", "rollout": "random", "exploration": 2.0, "share": False},
    "hidden start, q-mdp": {"name": "hidden start", "rollout": "q-mdp", "exploration": 0.5, "share": True},
}


def simulated(case: str) -> dict[str, Any]:
    """Decisions, values and sizes of the tree in six steps of an episode, for three seeds; looks show the likeliest state."""
    settings = dict(SIMULATED[case])
    model = problem(settings.pop("name"))
    found = {}
    for seed in range(3):
        planner = am.planners.POMCP(model, simulations=300, depth=12, particles=100, seed=seed, **settings)
        planner.begin(
            am.Belief.start(model) if not model.start_is_known else am.Belief.at(int(model.initial_states[0]))
        )
        steps = []
        for _ in range(6):
            decision = planner.decide()
            steps.append([
                int(decision.action), bool(decision.measure), exact(planner.value), planner.histories,
                digest(planner.q_values()), planner.reinvigorated, planner.deprivations,
            ])  # fmt: skip
            belief = planner.belief().predict(model, decision.action)
            if belief.is_over:
                break
            likely = int(belief.states[int(np.argmax(belief.probabilities))])
            planner.observe(decision, likely if decision.measure else None)
        found[f"seed {seed}"] = steps
    return found


# --- agents -----------------------------------------------------------------------------------------------------------

SEEDS = (0, 1, 7)
TRAINED_ON = ("frozen-lake", "maintenance")
FORESIGHT_ON = ("frozen-lake", "chain")
MAX_STEPS = 40
PLANNING = {"simulations": 60, "particles": 40, "depth": 10}
#: Numbers of episodes; 200 for the others.
EPISODES = {"acno-otp": 14, "acno-pomcp": 12, "pomcp": 8, "dyna-atmq published": 60}
LEARNING = ("atmq", "dyna-atmq", "amrl-q", "foresight", "acno-otp", "acno-pomcp")
#: Settings of agents other than their defaults, which are recorded as well.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "atmq published": ("atmq", {"preset": "published"}),
    "dyna-atmq published": ("dyna-atmq", {"preset": "published"}),
    "amrl-q published": ("amrl-q", {"preset": "published"}),
}


def make_agent(name: str, model: am.Model, on: str) -> am.agents.Agent:
    kind, settings = VARIANTS.get(name, (name, {}))
    if kind == "schedule":
        settings = {"schedule": solved(on, planning_discount(on), "optimal").schedule, "model": model}
    elif kind == "pomcp":
        settings = {"model": model, **PLANNING}
    elif kind == "acno-otp":
        settings = {"exploring_episodes": 10, **PLANNING}
    elif kind == "acno-pomcp":
        settings = dict(PLANNING)
    return am.agents.make(kind, **settings)


def agent_names() -> list[str]:
    return [*am.agents.AGENTS, *VARIANTS]


def q_values_data(name: str, agent: am.agents.LearningAgent) -> str:
    """What an agent has learned about actions; not exact where it plans, or iterates, on a learned model."""
    is_exact = VARIANTS.get(name, (name, {}))[0] in ("atmq", "dyna-atmq", "amrl-q")
    return ("" if is_exact else "~") + digest(agent.q_values())


def trained(name: str) -> dict[str, Any]:
    """Episodes of an agent on models, and with the last seed in the environment of the model."""
    found: dict[str, Any] = {}
    count = EPISODES.get(name, 200)
    for on in FORESIGHT_ON if name == "foresight" else TRAINED_ON:
        model = problem(on)
        for seed in SEEDS:
            agent = make_agent(name, model, on)
            episodes = am.train(agent, model, count, seed=seed, max_steps=MAX_STEPS)
            if isinstance(agent, am.agents.LearningAgent):
                found[f"{on}, seed {seed}, q_values"] = q_values_data(name, agent)
            found[f"{on}, seed {seed}"] = episodes_data(episodes)
        short = min(count, 40) if name != "foresight" else count
        env = am.envs.TabularEnv(model, max_steps=MAX_STEPS)
        told = am.train(
            make_agent(name, model, on), env, short, seed=SEEDS[-1], max_steps=MAX_STEPS, planned_episodes=count
        )
        found[f"{on}, environment, {short} episodes"] = episodes_data(told)
        found[f"{on}, last"] = [
            exact(episodes.scalarized_return[-1]),
            int(episodes.measurements.sum()),
            int(episodes.steps.sum()),
        ]
    return found


# --- records, advice --------------------------------------------------------------------------------------------------

RECORDS, FIT, PRICES = FOLDER / "records.csv", FOLDER / "fit.npz", FOLDER / "prices.toml"

PRICES_TEXT = """\
# What inspecting and repairing costs; all figures are made up.
currency = "EUR"
period = "year"
interest = "30 %/year"
inspection = "150 EUR"

[actions]
nothing = 0
repair = { "2" = "2500 EUR", otherwise = "2000 EUR" }

[running]
"1" = "200 EUR/year"
"2" = "100 EUR/month"

[failure]
states = ["2"]
price = "6000 EUR"
"""


def make_records() -> str:
    """Records of units that wear and are sometimes repaired, looked at after gaps of 1 to 3 periods, as CSV."""
    rng = np.random.default_rng(11)
    wear = np.array([[0.8, 0.2, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]]).cumsum(axis=1)
    repair = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.7, 0.3, 0.0]]).cumsum(axis=1)
    lines = ["unit,time,state,action"]
    for unit in range(30):
        state, next_look = int(rng.integers(2)), 0
        for time in range(14):
            looks = time == next_look
            if looks:
                next_look = time + int(rng.integers(1, 4))
            action = int(rng.random() < 0.2)
            lines.append(f"u{unit},{time},{state if looks else ''},{('nothing', 'repair')[action]}")
            state = int(np.searchsorted((wear, repair)[action][state], rng.random(), side="right"))
    return "\n".join(lines) + "\n"


@cache
def fitted() -> am.Fit:
    return am.fit(RECORDS, structure={"nothing": "deteriorate"}, bootstrap=4, goodness=10, period="year", seed=3)


def fit_data(fit: am.Fit) -> dict[str, Any]:
    def looser(numbers: Any) -> list[Any]:
        return [] if numbers is None else each(numbers, lambda number: rounded(number, "~~"))

    goodness = fit.goodness
    return {
        "states": list(fit.state_names),
        "actions": list(fit.action_names),
        "probabilities": looser(fit.probabilities),
        "low": looser(fit.low),
        "high": looser(fit.high),
        "level": exact(fit.level),
        "bootstrap": looser(fit.bootstrap),
        "initial": each(fit.initial, exact),
        "log_likelihood": rounded(fit.log_likelihood, "~~"),
        "inspected": each(fit.inspected, int),
        "exposure": looser(fit.exposure),
        "assumed": each(fit.assumed, bool),
        "structure": list(fit.structure),
        "noticed": list(fit.noticed),
        "dropped": list(fit.dropped),
        "period": fit.period,
        "counts": [fit.n_units, fit.n_records, fit.n_inspections],
        "unknown": [list(pair) for pair in fit.unknown],
        "remarks": [len(fit.identifiability), len(fit.warnings), len(fit.notes)],
        "goodness": None if goodness is None else [
            goodness.replicates, len(goodness.findings),
            [[test.name, rounded(test.statistic, "~~"), rounded(test.p_value, "~~")] for test in goodness.tests],
        ],
    }  # fmt: skip


def fit_with_assumptions() -> dict[str, Any]:
    """The same records with an action assumed to lead to a state, and a state that is noticed at once; no bootstrap."""
    fit = am.fit(
        RECORDS, structure={"nothing": "deteriorate"}, assume={"repair": "0"}, noticed=["2"], bootstrap=0, goodness=0
    )
    return fit_data(fit)


@cache
def advice(on: str) -> am.inspection.Advice:
    if on == "fit":
        return am.inspection.advise(fitted(), PRICES, time_limit=None)
    model = machine() if on == "machine" else hidden_start()
    return am.inspection.advise(model, currency="EUR", period="month", time_limit=None)


def advice_data(on: str) -> dict[str, Any]:
    found = advice(on)
    sure = found.confidence
    prefix = "~~" if on == "fit" else "~"

    def write(number: float | None) -> str | None:
        return rounded(number, prefix)

    return {
        "value": write(found.value),
        "upper": write(found.upper),
        "values": each(found.values, write),
        "schedule": schedule_data(found.schedule, 10),
        "expected": sorted(found.expected),
        "policies": [
            [one.key, write(one.value), write(one.evaluation.discounted_measurements), schedule_data(one.schedule)]
            for one in found.policies
        ],
        "prices": [
            [write(one.low), write(one.high), write(one.reward), write(one.looks), schedule_data(one.schedule, 0)["all"]]
            for one in found.prices
        ],
        "rows": [[row.name, row.inspect_after, row.is_expected, write(row.value)] for row in found.rows],
        "confidence": None if sure is None else {
            "values": each(sure.values, write),
            "best": each(sure.best, write),
            "asked": sure.asked,
            "agreement": {
                str(state): [exact(one.same_plan), exact(one.same_action), exact(one.earliest), exact(one.latest)]
                for state, one in sure.agreement.items()
            },
        },
        "remarks": len(found.notes),
    }  # fmt: skip


def page_numbers() -> dict[str, Any]:
    """All numbers in the data of the page that `actmeasure plan --report` writes."""
    from command_line import actmeasure

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        actmeasure("plan", FOLDER / "hidden-start.json", "--report", page, "--time-limit", 600)
        (data,) = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    return numbers_in(json.loads(data))


# --- statistics and studies -------------------------------------------------------------------------------------------

STUDY, STUDY_FOLDER = FOLDER / "study.toml", FOLDER / "study"
STUDY_TEXT = """\
name = "golden"
title = "Two agents and two plans"

[[part]]
name = "small"
title = "A chain of six"
episodes = 15
seeds = 2
problems = [{name = "chain", label = "six", settings = {n = 6}}]
agents = ["amrl-q", {name = "atmq", label = "published", preset = "published"}]
methods = ["optimal", "every-2"]
"""


def seed_statistics() -> dict[str, Any]:
    """Mean and interval over seeds."""
    found = {}
    for name in ("amrl-q", "random"):
        runs = am.train_seeds(name, problem("frozen-lake"), 40, seeds=SEEDS, max_steps=MAX_STEPS, workers=1)
        found[name] = {
            "episodes": [episodes_data(one) for one in runs.episodes],
            "means": {key: each(means, exact) for key, means in runs.means(last=10).items()},
            "summary": {
                key: [*map(rounded, (one.mean, one.deviation, one.low, one.high))]
                for key, one in runs.summary(last=10).items()
            },
        }
    return found


def table_data(frame: Any) -> dict[str, Any]:
    """A table of a study, column by column."""
    inexact = ("discounted_return", "scalarized_return", "reward", "measurements", "steps", "lower", "upper")
    found: dict[str, Any] = {}
    for name in frame.columns:
        values = frame[name].tolist()
        if name in inexact and "method" in frame.columns:
            found[name] = each(values)
        elif frame[name].dtype.kind == "f":
            found[name] = [digest(np.array(values)), *each(values[:4], exact)]
        elif frame[name].dtype.kind in "iu" and len(values) > 8:
            found[name] = [digest(np.array(values, dtype=np.int64)), *values[:4]]
        else:
            found[name] = list(dict.fromkeys(map(str, values)))
    return found | {"rows": len(frame)}


def study_data(folder: Path) -> dict[str, Any]:
    """The tables of a study that was run."""
    results = am.experiments.read_results(folder)
    return {
        "runs": table_data(results.runs),
        "episodes": table_data(results.episodes),
        "plans": table_data(results.plans),
        "missing": len(results.missing),
    }


def run_the_study(folder: Path) -> None:
    from study_tools import InlineEngine

    summary = am.run_study(am.experiments.read_study(STUDY), folder, InlineEngine())
    assert summary.stopped == "done", summary


def study_run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run_the_study(Path(folder))
        return study_data(Path(folder))


def study_trials() -> list[str]:
    """Trials of the study file, by the hashes under which results are stored."""
    return [trial.hash for trial in am.experiments.read_study(STUDY).trials()]


def study_found() -> dict[str, Any]:
    """What running the study again finds in its stored folder, where results of other code are kept."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "study")
        shutil.copytree(STUDY_FOLDER, copy)
        study = am.experiments.read_study(STUDY)
        summary = am.run_study(study, copy, am.experiments.LocalEngine(workers=1), keep=True)
        return {part.name: [part.done, part.found, part.failed, part.left] for part in summary.parts}


def study_statistics() -> dict[str, Any]:
    """Means, intervals and comparisons, as the tables of the report on the stored study have them."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "study")
        shutil.copytree(STUDY_FOLDER, copy)
        am.report.build(copy)
        for name in ("results", "comparisons", "curves", "plans"):
            with (copy / f"{name}.csv").open(newline="") as file:
                rows = list(csv.DictReader(file))[:12]
            found[name] = [{key: _cell(text) for key, text in row.items()} for row in rows]
    return found


def _cell(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text
    return rounded(number)


# --- files ------------------------------------------------------------------------------------------------------------

#: Models of which a file of every format is kept.
MODEL_FILES: dict[str, Callable[[], am.Model]] = {
    "machine": machine,
    "cost-table": cost_table,
    "hidden-start": hidden_start,
}
FORMATS = ("json", "npz", "pomdp")


def stored_after(name: str) -> tuple[int, int]:
    """Episodes of an agent before it is stored, and after it is loaded.

    Foresight is stored between its first plan and its second, and goes on until it follows the second. (A file that this
    version wrote before the first plan cannot be loaded.)
    """
    return (60, 60) if name == "foresight" else (12, 8)


def agent_to_store(name: str) -> am.agents.LearningAgent:
    """An agent after some episodes."""
    model = problem("frozen-lake")
    agent = make_agent(name, model, "frozen-lake")
    before, after = stored_after(name)
    am.train(agent, model, before, seed=5, max_steps=MAX_STEPS, planned_episodes=before + after)
    assert isinstance(agent, am.agents.LearningAgent)
    return agent


def goes_on(name: str, agent: am.agents.LearningAgent) -> dict[str, Any]:
    """The episodes of an agent that is trained further, and what it then thinks of actions."""
    before, after = stored_after(name)
    model = problem("frozen-lake")
    episodes = am.train(agent, model, after, seed=5, max_steps=MAX_STEPS, planned_episodes=before + after)
    return {
        "episodes": episodes_data(episodes),
        "returns": each(episodes.scalarized_return, exact),
        "q_values": q_values_data(name, agent),
    }


def model_text(name: str, suffix: str) -> str:
    """What a model is written as, in a format that is text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.{suffix}")
        MODEL_FILES[name]().save(path)
        return path.read_text()


def economics_data() -> dict[str, Any]:
    """What the file of prices says."""
    prices = am.Economics.load(PRICES)
    fields = ("inspection_by_state", "inspection_by_action", "actions", "running", "failure_states", "terminal")
    plain = {name: json.loads(json.dumps(getattr(prices, name), default=dict)) for name in fields}
    return {
        "currency": prices.currency,
        "period": prices.period,
        "discount": rounded(prices.discount),
        "inspection": exact(prices.inspection),
        "failure_price": exact(prices.failure_price),
        "numbers": numbers_in(plain),
    }


def seed_table() -> str:
    """The table that training with several seeds is saved as."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.csv")
        am.train_seeds("random", problem("chain"), 5, seeds=2, max_steps=MAX_STEPS, workers=1).save(path)
        return path.read_text()


def write_models_and_agents(only_new: bool = False) -> None:
    """Write a model file of every format and a file of every agent that can be saved; with `only_new` those that are missing."""
    builders = {f"{name}.{suffix}": build for name, build in MODEL_FILES.items() for suffix in FORMATS}
    builders |= {f"agent-{name}.npz": lambda name=name: agent_to_store(name) for name in LEARNING}  # type: ignore[misc]
    for file, build in builders.items():
        if not (only_new and (FOLDER / file).exists()):
            build().save(FOLDER / file)


def write_files() -> None:
    """Write a file of every format."""
    RECORDS.write_text(make_records())
    PRICES.write_text(PRICES_TEXT)
    STUDY.write_text(STUDY_TEXT)
    write_models_and_agents()
    fitted().save(FIT)
    (FOLDER / "runs.csv").write_text(seed_table())
    shutil.rmtree(STUDY_FOLDER, ignore_errors=True)
    run_the_study(STUDY_FOLDER)
    (STUDY_FOLDER / ".lock").unlink(missing_ok=True)


# --- everything -------------------------------------------------------------------------------------------------------


def _case(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def sections() -> dict[str, dict[str, Callable[[], Any]]]:
    """What is computed, by section and case."""
    cases = planning_cases()
    return {
        "models": {name: _case(model_data, name) for name in (*SMALL, *OWN)},
        "solutions": {f"{name}, discount {discount}": _case(solution_data, name, discount) for name, discount in cases},
        "evaluations": {f"{name}, discount {discount}": _case(evaluations, name, discount) for name, discount in cases}
        | {"a function of the belief": evaluation_of_a_function},
        "q_mdp": {"all": q_mdp_data},
        "explanations": {name: _case(explanations, name) for name in EXPLAINED},
        "frontiers": {name: lambda name=name: frontier_data(frontier(name)) for name in TRADED},
        "pomcp": {case: _case(simulated, case) for case in SIMULATED},
        "episodes": {name: _case(trained, name) for name in agent_names()},
        "fit": {"records": lambda: fit_data(fitted()), "assumptions": fit_with_assumptions},
        "advice": {on: _case(advice_data, on) for on in ("machine", "hidden start", "fit")} | {"page": page_numbers},
        "studies": {
            "seeds": seed_statistics,
            "trials": study_trials,
            "run": study_run,
            "found": study_found,
            "report": study_statistics,
        },
        "files": {"economics": economics_data}
        | {f"agent {name} goes on": lambda name=name: goes_on(name, agent_to_store(name)) for name in LEARNING},
    }


def recorded_with() -> dict[str, str]:
    """The processor's type and the libraries, on which last bits may depend."""
    found = {name: version(name) for name in LIBRARIES}
    return found | {"python": platform.python_version(), "system": platform.system(), "processor": _processor()}


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = ("model name", "cpu family", "model", "stepping")
    values = [re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE) for name in names]
    flags = hashlib.sha256(" ".join(re.findall(r"^flags\s*:.*$", text, re.MULTILINE)[:1]).encode()).hexdigest()[:8]
    return " ".join([*(found[1] for found in values if found), flags]) or platform.processor()


def load_values() -> dict[str, Any]:
    values: dict[str, Any] = json.loads(VALUES.read_text())
    return values


def differences(recorded: Any, computed: Any, is_same_machine: bool, path: str = "") -> list[str]:
    """Where computed values are not as recorded: a line with the key and both values for each."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        keys = [*recorded, *(key for key in computed if key not in recorded)]
        missing = object()
        pairs = [(key, recorded.get(key, missing), computed.get(key, missing)) for key in keys]
        found = []
        for key, old, new in pairs:
            place = f"{path} / {key}" if path else str(key)
            if old is missing or new is missing:
                found.append(f"{place}: {'not recorded' if old is missing else 'recorded, but not computed any more'}")
            else:
                found += differences(old, new, is_same_machine, place)
        return found
    if isinstance(recorded, list) and isinstance(computed, list) and len(recorded) == len(computed):
        pairs = zip(recorded, computed, strict=True)  # type: ignore[assignment]
        lines = (differences(old, new, is_same_machine, f"{path} [{n}]") for n, (old, new) in enumerate(pairs))  # type: ignore[misc]
        return [line for part in lines for line in part]
    if type(recorded) is type(computed) and (
        recorded == computed or (not is_same_machine and _is_close(recorded, computed, path))
    ):
        return []
    return [f"{path}: recorded {_shown(recorded)}, computed {_shown(computed)}"]


def _is_close(recorded: Any, computed: Any, path: str) -> bool:
    if not isinstance(recorded, str) or not recorded.startswith("~") or not computed.startswith("~"):
        return False
    if recorded.startswith("~sha256:"):
        return bool(computed.startswith("~sha256:"))
    prefix = next(prefix for prefix in TOLERANCES if recorded.startswith(prefix))
    old, new = (float.fromhex(text.lstrip("~")) for text in (recorded, computed))
    both_unknown = math.isnan(old) and math.isnan(new)
    if path.endswith("discounted_error"):
        # A bound on rounding: what is left of a residual that differs from machine to machine.
        return both_unknown or new <= 10 * old + TOLERANCES[prefix]
    return both_unknown or math.isclose(old, new, rel_tol=TOLERANCES[prefix], abs_tol=TOLERANCES[prefix])


def _shown(value: Any) -> str:
    """A value, and the number it stands for."""
    if isinstance(value, str) and re.fullmatch(r"~*(-?0x[0-9a-f.]+p[-+]\d+|-?inf|nan)", value):
        return f"{value} ({float.fromhex(value.lstrip('~'))!r})"
    text = json.dumps(value)
    return text if len(text) < 200 else f"{text[:200]}..."


def write_values(recorded: Mapping[str, Any] | None = None) -> None:
    """Compute everything and write `values.json`, a line for each part of a case; parts in `recorded` are kept."""
    before = recorded or {"recorded_with": recorded_with(), ELSEWHERE: []}
    elsewhere = list(before.get(ELSEWHERE, []))
    is_same_machine = before["recorded_with"] == recorded_with()
    lines = []
    for section, cases in sections().items():
        parts = []
        for case, compute in cases.items():
            value, known = compute(), before.get(section, {}).get(case, {})
            if isinstance(value, dict):
                elsewhere += [] if is_same_machine else [[section, case, key] for key in value if key not in known]
                value = {key: known.get(key, part) for key, part in value.items()}
                inner = ",\n".join(f"   {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items())
                text = f"{{\n{inner}\n  }}"
            else:
                text = json.dumps(known or value)
            parts.append(f"  {json.dumps(case)}: {text}")
        joined = ",\n".join(parts)
        lines.append(f" {json.dumps(section)}: {{\n{joined}\n }}")
    head = [f" {json.dumps('recorded_with')}: {json.dumps(before['recorded_with'])}"]
    head += [f" {json.dumps(ELSEWHERE)}: {json.dumps(elsewhere)}"] if elsewhere else []
    VALUES.write_text("{\n" + ",\n".join([*head, *lines]) + "\n}\n")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    parser = argparse.ArgumentParser(description="Record golden values and files anew, over those that are there.")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--new", action="store_true", help="record only what is not recorded yet")
    only.add_argument("--values", action="store_true", help="leave the files as they are")
    asked = parser.parse_args()
    if asked.new:
        write_models_and_agents(only_new=True)
        write_values(load_values())
    else:
        if not asked.values:
            write_files()
        write_values()
