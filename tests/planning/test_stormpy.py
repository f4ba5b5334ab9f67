"""An independent solver agrees: the belief exploration of the model checker Storm.

Storm knows neither a discount nor looking at a price, so the model is written out for it. A step goes on with probability
`discount`, and otherwise to the end. Each state is there twice, seen and unseen; looking is a choice of its own. Storm wants
prices that are not negative: with a pledge of 1 that is given back as the episode comes to its end, a step costs

    1 - discount * P(still running) - reward (+ the price of a look),

which is never negative on a lake, and all steps together cost 1 - return.
"""

import re

import numpy as np
import pytest

import actmeasure as am

stormpy = pytest.importorskip("stormpy", reason="stormpy is not installed: pip install stormpy")
pomdp = pytest.importorskip("stormpy.pomdp", reason="this stormpy has no POMDP support")
if not hasattr(pomdp, "verify_with_belief_unfolding"):
    pytest.skip("stormpy 2.0 or later is needed", allow_module_level=True)

#: Storm's own precision.
STORM = 1e-5


def written_out(model):
    """The model in Storm's explicit format (DRN)."""
    P, terminal = model.transitions.dense(), np.array(model.terminal)
    n_states, n_actions = model.n_states, model.n_actions
    end, unseen, over = 2 * n_states, n_states, n_states + 1
    lines = []
    for copy in range(2):
        for state in range(n_states):
            seen_as = over if terminal[state] else (unseen if copy else state)
            begins = " init" if copy == 0 and state == model.initial_states[0] else ""
            ends = " end" if terminal[state] else ""
            lines.append(f"state {copy * n_states + state} {{{seen_as}}} [0]{begins}{ends}")
            for action in range(n_actions):
                for look in range(2):
                    if terminal[state]:
                        price, row = 0.0, {end: 1.0}
                    else:
                        price, row = _step(model, P[state, action], terminal, state, action, look)
                    lines.append(f"\taction a{action}{'look' * look} [{price!r}]")
                    lines += [f"\t\t{target} : {p!r}" for target, p in sorted(row.items())]
    lines.append(f"state {end} {{{over}}} [0] end")
    for action in range(n_actions):
        for look in range(2):
            lines += [f"\taction a{action}{'look' * look} [0]", f"\t\t{end} : 1"]
    sizes = f"@nr_states\n{end + 1}\n@nr_choices\n{(end + 1) * 2 * n_actions}\n"
    return f"@type: POMDP\n@parameters\n\n@reward_models\nprice\n{sizes}@model\n" + "\n".join(lines) + "\n"


def _step(model, probabilities, terminal, state, action, look):
    end = 2 * model.n_states
    price = 1 - model.discount * probabilities[~terminal].sum() - model.rewards[state, action]
    row = {end: 1 - model.discount}
    for successor in np.flatnonzero(probabilities):
        target = end if terminal[successor] else int(successor) + (1 - look) * model.n_states
        row[target] = row.get(target, 0.0) + float(model.discount * probabilities[successor])
    return max(float(price), 0.0) + look * model.measurements[0].of(state, action), row


def storms_bounds(model, path, beliefs, resolution):
    """Storm's lower and upper bound on the optimum."""
    path.write_text(written_out(model))
    return tuple(1 - value for value in storms_values(path, 'R{"price"}min=? [F "end"]', beliefs, resolution))


def storms_values(path, asked, beliefs, resolution):
    """The value of the best controller that Storm finds, and its bound on what can be had, for the model in a file."""
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    built = stormpy.build_model_from_drn(str(path), options=options)
    wanted = stormpy.parse_properties(asked)[0]
    unfolded = pomdp.verify_with_belief_unfolding(built, wanted, max_exploration_size=beliefs)
    triangulated = pomdp.verify_with_belief_discretization(built, wanted, resolution, use_dynamic=True)
    return unfolded.value, triangulated.value


@pytest.mark.parametrize(
    ("variant", "cost", "discount", "resolution", "width"),
    [
        ("deterministic", 0.05, 0.9, 4, 1e-4),
        ("semi-slippery", 0.05, 0.9, 8, 1e-4),
        ("semi-slippery", 0.1, 0.8, 8, 1e-4),
        ("slippery", 0.05, 0.8, 4, 0.1),
    ],
)
def test_storm_agrees_on_small_lakes(tmp_path, variant, cost, discount, resolution, width):
    model = am.problems.frozen_lake(4, variant, cost, discount)
    lower, upper = storms_bounds(model, tmp_path / "lake.drn", beliefs=5_000, resolution=resolution)
    solution = am.solve(model, tolerance=1e-7)
    assert upper - lower <= width
    assert lower - STORM <= solution.upper
    assert solution.lower <= upper + STORM


def hidden_model():
    """Noisy and exact looks, names that a file cannot hold, a hidden start and all rewards positive."""
    rng = np.random.default_rng(0)
    gauge = am.Measurement.noisy("gauge & 1", cost=0.1, probabilities=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    return am.Model.from_arrays(
        rng.dirichlet(np.ones(3), size=(3, 2)), 1 + rng.random((3, 2)),
        measurements=[gauge, am.Measurement.exact("open", cost=0.3, with_actions=(1,))],
        discount=0.8, initial=[0.2, 0.3, 0.5], action_names=('x"y', "// z"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "width"),
    [
        (am.problems.maintenance, 0.01),  # costs only
        (am.problems.measuring_value, 1e-6),
        (lambda: am.problems.frozen_lake(4, "deterministic", 0.05, 0.9), 1e-6),
        (hidden_model, 0.3),
    ],
)
def test_storm_reads_what_save_writes(tmp_path, make, width):
    model, path = make(), tmp_path / "model.drn"
    model.save(path)
    (asked,) = re.findall(r"// Optimum: (.*)", path.read_text())
    sign = -1 if "min" in asked else 1
    lower, upper = (sign * value for value in storms_values(path, asked, beliefs=5_000, resolution=6))
    solution = am.solve(model, tolerance=1e-5)
    assert upper - lower <= width
    assert lower - STORM <= solution.upper
    assert solution.lower <= upper + STORM
