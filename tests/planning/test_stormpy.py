"""An independent solver agrees: the belief exploration of the model checker Storm.

Storm knows neither a discount nor looking at a price, so the model is written out for it. A step goes on with probability
`discount`, and otherwise to the end. Each state is there twice, seen and unseen; looking is a choice of its own. Storm wants
prices that are not negative: with a pledge of 1 that is given back as the episode comes to its end, a step costs

    1 - discount * P(still running) - reward (+ the price of a look),

which is never negative on a lake, and all steps together cost 1 - return.
"""

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
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    built = stormpy.build_model_from_drn(str(path), options=options)
    wanted = stormpy.parse_properties('R{"price"}min=? [F "end"]')[0]
    unfolded = pomdp.verify_with_belief_unfolding(built, wanted, max_exploration_size=beliefs)
    triangulated = pomdp.verify_with_belief_discretization(built, wanted, resolution, use_dynamic=True)
    return 1 - unfolded.value, 1 - triangulated.value


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
