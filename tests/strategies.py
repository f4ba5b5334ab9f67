"""Random models and schedules for property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import actmeasure as am


def examples(number):
    """Decorate a property test that takes seconds: `number` examples in `make test-all`, a sixth of them in `make test`."""
    is_short = settings.get_current_profile_name() != "all"
    return settings(max_examples=max(3, number // 6) if is_short else number)


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
