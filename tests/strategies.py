"""Random models and schedules for property tests."""

import warnings

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import actmeasure as am


def examples(number):
    """Decorate a property test that takes seconds: `number` examples in `make test-all`, a tenth of them in `make test`."""
    is_short = settings.get_current_profile_name() != "all"
    return settings(max_examples=max(3, number // 10) if is_short else number)


@st.composite
def models(draw, max_states=6, max_actions=3, discounts=(0.5, 0.9, 0.99), may_end=(True, False)):
    """Models with sparse rows, negative rewards, rewards per successor, random and hidden starts, costs per state and action."""
    n_states, n_actions = draw(st.integers(2, max_states)), draw(st.integers(1, max_actions))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    P = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    P[rng.random(P.shape) < draw(st.sampled_from([0.0, 0.5, 0.8]))] = 0.0
    P[..., -1] += P.sum(axis=2) == 0
    P /= P.sum(axis=2, keepdims=True)
    terminal = np.zeros(n_states, dtype=bool)
    if draw(st.sampled_from(may_end)):
        terminal[rng.integers(0, n_states)] = True
    R = rng.normal(size=(n_states, n_actions, n_states) if draw(st.booleans()) else (n_states, n_actions))
    R[terminal] = 0.0
    cost = draw(st.sampled_from([0.0, 0.05, 1.0])) if draw(st.booleans()) else rng.random((n_states, n_actions))
    running = np.flatnonzero(~terminal)
    initial = int(rng.choice(running))
    if draw(st.booleans()):
        initial = np.zeros(n_states)
        initial[running] = rng.dirichlet(np.ones(len(running)))
    return am.Model.from_arrays(
        P,
        R,
        measuring_cost=cost,
        discount=draw(st.sampled_from(discounts)),
        initial=initial,
        terminal=terminal,
        reveal_start=draw(st.booleans()),
    )


def random_schedule(model, rng, longest=4):
    """A plan for every state that is not terminal, and one for the start; of every kind that fits."""
    plans = {int(s): random_plan(model, am.Belief.at(int(s)), rng, longest) for s in np.flatnonzero(~model.terminal)}
    return am.Schedule(plans, model.n_states, start=random_plan(model, am.Belief.start(model), rng, longest))


def random_plan(model, belief, rng, longest):
    """Random actions; ends as `known` or `end` where it can, and otherwise looks or repeats."""
    actions = tuple(int(a) for a in rng.integers(0, model.n_actions, size=rng.integers(1, longest + 1)))
    for action in actions:
        belief = belief.predict(model, action)
    fits = ["measure", "repeat"] + ["end"] * 2 * belief.is_over + ["known"] * 2 * (belief.known is not None)
    then = str(rng.choice(fits))
    return am.BlindPlan(actions, then=then, repeat=int(rng.integers(1, len(actions) + 1)) if then == "repeat" else 0)


def random_law(rng, n_states, n_outcomes, n_actions=None, sparsity=0.4):
    """Probabilities of outcomes, shape (S, O) or (A, S, O), some of them 0."""
    shape = (n_states,) if n_actions is None else (n_actions, n_states)
    Z = rng.dirichlet(np.ones(n_outcomes), size=shape)
    Z[rng.random(Z.shape) < sparsity] = 0.0
    Z[..., 0] += Z.sum(axis=-1) == 0
    return Z / Z.sum(axis=-1, keepdims=True)


def random_measurement(rng, name, n_states, n_actions, with_price=True):
    """A measurement of any kind, with or without a restriction to some actions, with one price or prices per state and action."""
    cost = 0.0
    if with_price:
        cost = float(rng.random()) if rng.random() < 0.7 else rng.random((n_states, n_actions))
    allowed = None
    if with_price and rng.random() < 0.3:
        allowed = [int(a) for a in rng.choice(n_actions, size=rng.integers(1, n_actions + 1), replace=False)]
    kind = rng.integers(0, 6)
    if kind == 0:
        return am.Measurement.exact(name, cost, with_actions=allowed)
    if kind == 1:
        return am.Measurement.detection(name, cost, pod=rng.random(n_states), with_actions=allowed)
    if kind == 2:
        return am.Measurement.partial(
            name, cost, shows=[int(x) for x in rng.integers(0, 3, n_states)], with_actions=allowed
        )
    if kind == 3:
        parts = [random_measurement(rng, f"{name} {i}", n_states, n_actions, False) for i in range(2)]
        return am.Measurement.combined(parts, name, cost, with_actions=allowed)
    by_action = n_actions if kind == 4 else None
    Z = random_law(rng, n_states, int(rng.integers(1, 5)), by_action)
    return am.Measurement.noisy(name, cost, probabilities=Z, with_actions=allowed)


@st.composite
def general_models(draw, max_states=5, max_actions=3, discounts=(0.5, 0.9), passive=(True, False)):
    """Models with up to three measurements of any kind and perhaps a passive outcome."""
    base = draw(models(max_states, max_actions, discounts))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    looks = [random_measurement(rng, f"m{i}", base.n_states, base.n_actions) for i in range(draw(st.integers(0, 3)))]
    free = (
        random_measurement(rng, "free", base.n_states, base.n_actions, False)
        if draw(st.sampled_from(passive))
        else None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)  # random laws may have outcomes that no state can produce
        return base.replace(measurements=looks, passive=free)


def random_component(rng, n_states, n_actions, names=None):
    """A component with sparse matrices, costs that may depend on the state, and up to two measurements of any kind."""
    P = rng.dirichlet(np.ones(n_states), size=(n_actions, n_states))
    P[rng.random(P.shape) < 0.3] = 0.0
    P[..., -1] += P.sum(axis=2) == 0
    P /= P.sum(axis=2, keepdims=True)
    costs = {f"a{a}": rng.random() if rng.random() < 0.5 else rng.normal(size=n_states) for a in range(1, n_actions)}
    looks = [random_measurement(rng, f"m{i}", n_states, n_actions) for i in range(rng.integers(0, 3))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)
        return am.Component(
            {f"a{a}": P[a] for a in range(n_actions)},
            costs=costs,
            start=rng.dirichlet(np.ones(n_states)),
            measurements=looks,
            state_names=names,
        )


@st.composite
def systems(draw, max_components=3, max_states=3, max_actions=2, discounts=(0.5, 0.9)):
    """Systems of independent components with random penalties and perhaps mobilisation."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, max_components))
    parts = [
        random_component(rng, int(rng.integers(2, max_states + 1)), int(rng.integers(1, max_actions + 1)))
        for _ in range(count)
    ]
    penalties = rng.random((max_states,) * count) * draw(st.sampled_from([0.0, 1.0, 10.0]))
    return am.system(
        parts,
        penalty=lambda states: float(penalties[states]),
        mobilisation=draw(st.sampled_from([0.0, 0.3])),
        discount=draw(st.sampled_from(discounts)),
    )
