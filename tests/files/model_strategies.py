"""Random models, awkward on purpose, and what it takes for a loaded one to be sound."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import actmeasure as am

AWKWARD = [
    "", " ", "  ", "#", "a b", "a_b", "a-b", "a+b", 'quo"te', "it's", "back\\slash", "new\nline", "tab\t", "nul\0", "nul",
    "s0", "s1", "1", "2", "0", "-1", "nothing", "begin", "T", "O", "R", "start", "uniform", "reset", "cost", "*", ":",
    "go-blind", "go-measure", "go", "é", "日本語", "🦆", "\ud800", "\u2028", "{}", "# actmeasure {}", "x" * 300,
]  # fmt: skip


def names(count):
    some = st.lists(
        st.one_of(st.sampled_from(AWKWARD), st.text(max_size=6)), min_size=count, max_size=count, unique=True
    )
    return st.one_of(st.none(), some)


def numbers(rng, shape, kind):
    """Rewards or costs of a kind: mostly zeros, short decimals, all bits used, or of very different sizes."""
    plain = rng.integers(-3, 4, shape).astype(float)
    match kind:
        case "sparse":
            return np.where(rng.random(shape) < 0.7, 0.0, plain)
        case "decimal":
            return plain / 10
        case "bits":
            return rng.normal(size=shape)
        case _:
            return rng.normal(size=shape) * 10.0 ** rng.integers(-12, 7, shape)


@st.composite
def models(draw, most_states=5, discounts=(0.95, 0.5, 0.1 + 0.2, 1 / 3)):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_states, n_actions = draw(st.integers(1, most_states)), draw(st.integers(1, 3))
    terminal = rng.random(n_states) < draw(st.sampled_from((0.0, 0.3, 0.8)))
    terminal[rng.integers(n_states)] = False
    weights = rng.random((n_states, n_actions, n_states)) ** draw(st.sampled_from((1, 8)))
    weights[rng.random(weights.shape) < draw(st.sampled_from((0.0, 0.5, 0.9)))] = 0.0
    weights[weights.sum(axis=2) == 0, 0] = 1.0
    if draw(st.booleans()):
        weights = np.repeat(weights[:, :1], n_actions, axis=1)
    kind = draw(st.sampled_from(("sparse", "decimal", "bits", "sizes")))
    R = numbers(rng, (n_states, n_actions, n_states) if draw(st.booleans()) else (n_states, n_actions), kind)
    R[terminal] = 0.0
    cost = np.abs(numbers(rng, (n_states, n_actions), kind))
    initial = np.where(terminal, 0.0, rng.random(n_states) < 0.6)
    initial[np.flatnonzero(~terminal)[0]] = 1.0
    initial *= rng.random(n_states) + 0.1
    running = int(rng.choice(np.flatnonzero(~terminal)))
    return am.Model.from_arrays(
        weights / weights.sum(axis=2, keepdims=True),
        R,
        measuring_cost=cost if draw(st.booleans()) else float(cost[0, 0]),
        discount=draw(st.sampled_from(discounts)),
        initial=initial / initial.sum() if draw(st.booleans()) else running,
        terminal=terminal,
        reveal_start=draw(st.booleans()),
        state_names=draw(names(n_states)),
        action_names=draw(names(n_actions)),
    )


def check_sound(model):
    """Everything that the rest of the library takes for granted about a model."""
    table = model.transitions
    n_rows = model.n_states * model.n_actions
    assert table.offsets.dtype == np.int64
    assert table.successors.dtype == np.int32
    assert table.offsets.shape == (n_rows + 1,)
    assert table.offsets[0] == 0
    assert table.offsets[-1] == len(table.successors) == len(table.probabilities)
    assert (np.diff(table.offsets) >= 0).all()
    dense = table.dense()
    assert (table.probabilities > 0).all()
    np.testing.assert_allclose(dense.sum(axis=2)[~model.terminal], 1.0, atol=1e-9)
    assert not dense[model.terminal].any()
    assert np.isfinite(model.rewards).all()
    assert not model.rewards[model.terminal].any()
    if model.transition_rewards is not None:
        assert model.transition_rewards.shape == table.probabilities.shape
        expected = table.dense(table.probabilities * model.transition_rewards).sum(axis=2)
        scale = 1e-8 * (1 + np.abs(model.transition_rewards).max(initial=0))
        np.testing.assert_allclose(model.rewards, expected, rtol=1e-8, atol=scale)
    for measurement in (*model.measurements, *([] if model.passive is None else [model.passive])):
        check_sound_measurement(measurement, model)
    assert not model.terminal[model.initial_states].any()
    assert abs(model.initial_probabilities.sum() - 1) < 1e-9
    assert 0 < model.discount <= 1
    for names_of, count in ((model.state_names, model.n_states), (model.action_names, model.n_actions)):
        assert names_of is None or len(set(names_of)) == count
    for array in (table.offsets, table.successors, table.probabilities, model.rewards, model.terminal):
        assert not array.flags.writeable


def check_sound_measurement(measurement, model):
    prices = measurement.table(model.n_states, model.n_actions)
    assert (prices >= 0).all()
    assert np.isfinite(prices).all()
    actions = measurement.with_actions
    assert actions is None or (
        list(actions) == sorted(set(actions)) and 0 <= actions[0] <= actions[-1] < model.n_actions
    )
    law = measurement.law
    if law is None:
        return
    assert law.n_rows == (model.n_actions if law.by_action else 1) * model.n_states
    dense = law.matrix().toarray()
    assert (law.probabilities > 0).all()
    running = np.tile(~model.terminal, law.n_rows // model.n_states)
    np.testing.assert_allclose(dense.sum(axis=1)[running], 1.0, atol=1e-9)
    assert not dense[~running].any()
    assert measurement.outcomes is None or len(set(measurement.outcomes)) == law.n_outcomes
    for array in (law.offsets, law.outcomes, law.probabilities):
        assert not array.flags.writeable


def small_model(**changes):
    """A fixed model with a little of everything."""
    P = np.zeros((4, 2, 4))
    P[0, 0], P[0, 1], P[1, 0], P[1, 1], P[2, :, 2] = (
        (0, 0.8, 0.2, 0),
        (1, 0, 0, 0),
        (0, 0, 0, 1),
        (1 / 3, 1 / 3, 1 / 3, 0),
        1,
    )
    R = np.zeros((4, 2, 4))
    R[0, 0, 1], R[1, 0, 3], R[2, 1, 2] = 0.1, 1.0, -2.5
    settings = {
        "measuring_cost": 0.05,
        "discount": 0.95,
        "initial": 0,
        "terminal": [False, False, False, True],
        "state_names": ("here", "there", "stuck", "end"),
        "action_names": ("go", "wait"),
    }
    return am.Model.from_arrays(P, R, **(settings | changes))


def measuring_model(**changes):
    """A fixed model with measurements of all kinds."""
    Z = np.array([[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [1, 0]], [[0.6, 0.4], [0.3, 0.7], [1, 0], [1, 0]]])
    looks = [
        am.Measurement.detection("visual", cost=0.25, pod=[0.1, 0.9, 0.5, 0]),
        am.Measurement.exact("opening", cost=np.arange(8.0).reshape(4, 2), with_actions=["wait"]),
        am.Measurement.noisy("echo", cost=0.5, probabilities=Z, outcomes=("clear", "hit"), with_actions=["go"]),
    ]
    passive = am.Measurement.partial("alarm", shows=["off", "off", "on", "off"])
    model = small_model().replace(measurements=looks, passive=passive, reveal_start=False)
    return model.replace(**changes)


def damaged(contents, rng, times):
    """Copies of a file with bytes changed, removed, added or swapped, and the file cut off."""
    for _ in range(times):
        data = bytearray(contents)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            match int(rng.integers(7)):
                case 0:
                    data[at] ^= 1 << int(rng.integers(8))
                case 1:
                    del data[at : at + int(rng.integers(1, 20))]
                case 2:
                    data[at:at] = rng.bytes(int(rng.integers(1, 5)))
                case 3:
                    data[at:at] = rng.choice(
                        [b"0", b"9", b"-", b"e9", b".", b",", b":", b"*", b"}", b"[", b'"', b"#", b"\n"]
                    )
                case 4:
                    other = int(rng.integers(len(data)))
                    data[at:at] = data[other : other + 30]
                case 5:
                    data[at] = int(rng.integers(48, 58))
                case _:
                    del data[at:]
            if not data:
                break
        yield bytes(data)


def measurement(draw, rng, name, n_states, n_actions, passive=False):
    """A measurement of any kind, with sparse laws, outcomes that no state can produce, and prices of any form."""
    kind = draw(st.sampled_from(("exact", "noisy", "by action", "sparse", "combined")))
    prices = np.abs(numbers(rng, (n_states, n_actions), "bits"))
    cost = 0.0 if passive else prices if draw(st.booleans()) else float(prices[0, 0])
    some = tuple(int(a) for a in rng.choice(n_actions, size=rng.integers(1, n_actions + 1), replace=False))
    settings = {"cost": cost} if passive or draw(st.booleans()) else {"cost": cost, "with_actions": some}
    if kind == "exact":
        return am.Measurement.exact(name, **settings)

    def law(*shape):
        chances = rng.random(shape) ** 3
        chances[rng.random(shape) < draw(st.sampled_from((0.0, 0.6)))] = 0.0
        chances[..., -1] += chances.sum(axis=-1) == 0
        return chances / chances.sum(axis=-1, keepdims=True)

    n_outcomes = draw(st.integers(1, 4))
    outcomes = draw(names(n_outcomes))
    match kind:
        case "noisy":
            chances = law(n_states, n_outcomes)
        case "by action":
            chances = law(n_actions, n_states, n_outcomes)
        case "sparse":
            chances = sparse.csr_array(law(n_states, n_outcomes))
        case _:
            parts = [
                am.Measurement.noisy("one", probabilities=law(n_states, n_outcomes), outcomes=outcomes),
                am.Measurement.noisy("two", probabilities=law(n_actions, n_states, 2)),
            ]
            return am.Measurement.combined(parts, name, **settings)
    return am.Measurement.noisy(name, probabilities=chances, outcomes=outcomes, **settings)


@st.composite
def measuring_models(draw, most_states=5):
    """Models with any number of measurements of any kind, and perhaps passive outcomes."""
    model = draw(models(most_states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = (model.n_states, model.n_actions)
    count = draw(st.integers(0, 3))
    titles = draw(
        st.lists(
            st.one_of(st.sampled_from([name for name in AWKWARD if name.strip()]), st.just("look")),
            min_size=count + 1,
            max_size=count + 1,
            unique=True,
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)  # of outcomes that no state can produce
        looks = [measurement(draw, rng, title, *sizes) for title in titles[:count]]
        passive = measurement(draw, rng, titles[-1], *sizes, passive=True) if not count or draw(st.booleans()) else None
        return model.replace(measurements=looks, passive=passive)
