"""The tensor-grid bound: against the operator written out, value vectors of an independent planner, and published figures."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, random_component, systems

import actmeasure as am
from actmeasure.kernels import tensor_grid as kernel
from actmeasure.planning.budget import Budget
from actmeasure.planning.tensor_grid import _Builder, _means, _triangulation, tensor_grid


class LowerVectors:
    """Lower bounds on the optimum by point-based value iteration on the joint model. No code shared with the library's bounds."""

    def __init__(self, model, beliefs, rounds):
        n_states = model.n_states
        moves, paid = [], []
        for action, measurement in zip(*np.nonzero(model.allowed_decisions), strict=True):
            P = model.transitions.dense()[:, action]
            reward = model.rewards[:, action]
            law = np.ones((n_states, 1))
            if measurement:
                shown = model.measurements[measurement - 1]
                reward = reward - shown.table(n_states, model.n_actions)[:, action]
                law = np.eye(n_states) if shown.law is None else shown.law.of_action(int(action), n_states).toarray()
            moves.append(P[None] * law.T[:, None, :])
            paid.append(reward)
        most = max(len(one) for one in moves)
        self.moves = np.zeros((len(moves), most, n_states, n_states))
        for number, one in enumerate(moves):
            self.moves[number, : len(one)] = one
        self.paid, self.discount = np.array(paid), model.discount
        self.vectors = np.full((1, n_states), self.paid.min() / (1 - model.discount))
        for _ in range(rounds):
            self.vectors = np.unique(np.array([self.backup(belief) for belief in beliefs]), axis=0)

    def backup(self, belief):
        weights = np.einsum("s,dost->dot", belief, self.moves)
        chosen = self.vectors[(weights @ self.vectors.T).argmax(axis=2)]
        vectors = self.paid + self.discount * np.einsum("dost,dot->ds", self.moves, chosen)
        return vectors[(vectors @ belief).argmax()]

    def value(self, belief):
        return (self.vectors @ belief).max()


def visited(model, count, rng):
    """Beliefs after random decisions from the start, the start first."""
    decisions = model.origin.decisions.reshape(-1, 2)
    found, belief = [am.Belief.start(model)], am.Belief.start(model)
    while len(found) < count:
        action, measurement = decisions[rng.integers(len(decisions))].tolist()
        chances = belief.outcomes(model, action, measurement)
        outcome = int(rng.choice(len(chances), p=chances / chances.sum())) if measurement else None
        belief = belief.update(model, action, measurement, outcome)
        found.append(belief)
        if rng.random() < 0.2:
            belief = am.Belief.start(model)
    return found


@pytest.mark.slow
@examples(60)
@given(systems(max_components=2, discounts=(0.3, 0.8)), st.integers(0, 2**32 - 1))
def test_bounds_are_above_the_values_of_policies(model, seed):
    beliefs = visited(model, 20, np.random.default_rng(seed))
    below = LowerVectors(model, [belief.dense(model.n_states) for belief in beliefs], 12)
    grid = tensor_grid(model, Budget(), levels=(6, 12))
    for belief in beliefs:
        assert grid.bound(belief) >= below.value(belief.dense(model.n_states)) - 1e-12
    assert grid.start_bound >= below.value(beliefs[0].dense(model.n_states)) - 1e-12


@examples(30)
@given(systems(max_components=2, max_states=2, discounts=(0.3, 0.8)), st.integers(0, 2**32 - 1))
def test_bounds_are_close_where_components_have_two_states(model, seed):
    beliefs = visited(model, 40, np.random.default_rng(seed))
    below = LowerVectors(model, [belief.dense(model.n_states) for belief in beliefs], 25)
    grid = tensor_grid(model, Budget(), levels=(20, 80))
    span = grid.kernel.span
    assert grid.start_bound - below.value(beliefs[0].dense(model.n_states)) <= 0.01 * span


@examples(30)
@given(systems(max_components=4, max_actions=2), st.integers(0, 2**32 - 1))
def test_a_sweep_is_the_operator_written_out(model, seed):
    rng = np.random.default_rng(seed)
    builder = _Builder(model, model.origin, Budget(), 0)
    builder._refine(4)
    rows, distance, _ = builder._rows()
    assert distance < 1e-12
    values = rng.normal(size=builder.values.shape) * 1e-3
    n_choices, sizes = rows.n_choices, rows.sizes
    dense = [np.zeros((n_choices[c], sizes[c], sizes[c])) for c in range(4)]
    for c in range(4):
        for u, i in product(range(n_choices[c]), range(sizes[c])):
            entries = slice(rows.offsets[c, u, i], rows.offsets[c, u, i + 1])
            dense[c][u, i, rows.columns[entries]] = rows.weights[entries]
        assert dense[c].sum(axis=2) == pytest.approx(1.0)
    expected = np.full(values.shape, -np.inf)
    reach = [builder.points[c][:, None, :] for c in range(4)]
    assert all(points.sum() == pytest.approx(len(points)) for points in reach)
    penalty = _means(builder.penalty, builder.points)
    for chosen in product(*(range(count) for count in n_choices)):
        found = model.discount * np.einsum(
            "ai,bj,ck,dl,ijkl->abcd", *(dense[c][u] for c, u in enumerate(chosen)), values
        )
        for c, u in enumerate(chosen):
            shape = [1] * 4
            shape[c] = -1
            found = found - rows.costs[c, u, : sizes[c]].reshape(shape)
        expected = np.maximum(expected, found - penalty - model.origin.mobilisation * any(chosen))
    out = np.empty_like(values)
    largest = kernel.sweep(rows, penalty, model.origin.mobilisation, model.discount, 0.0, values, out)
    assert out == pytest.approx(np.minimum(expected, values), abs=1e-12)
    assert largest == pytest.approx((expected - values).max(), abs=1e-12)


@pytest.mark.parametrize("n_states", [2, 3, 4])
def test_weights_interpolate_beliefs(n_states):
    rng = np.random.default_rng(n_states)
    model = am.system([random_component(rng, n_states, 2)] * 2)
    builder = _Builder(model, model.origin, Budget(), 0)
    inside = rng.dirichlet(np.ones(n_states), size=20)
    edges = rng.dirichlet(np.ones(n_states), size=10) * (rng.random((10, n_states)) < 0.6)
    edges = edges[edges.sum(axis=1) > 0]
    points = np.concatenate([np.eye(n_states), inside, edges / edges.sum(axis=1, keepdims=True)])
    builder.points[2] = builder.points[3] = np.unique(points, axis=0)[::-1]
    builder.points[2] = builder.points[3] = np.concatenate(
        [np.eye(n_states), [p for p in builder.points[2] if p.max() < 1]]
    )
    grid = builder._grid(np.zeros((1, 1, len(builder.points[2]), len(builder.points[3]))))
    vertices, weights = np.zeros(4, np.int64), np.zeros(4)
    tested = [*rng.dirichlet(np.ones(n_states), size=300), *rng.dirichlet(np.full(n_states, 0.05), size=100)]
    for belief in [*tested, *builder.points[3]]:
        padded = np.zeros(4)
        padded[:n_states] = belief
        assert kernel.locate(grid, 3, padded, vertices, weights) < 1e-12
        chosen = builder.points[3][vertices[:n_states]]
        assert (weights[:n_states] >= 0).all()
        assert weights[:n_states].sum() == pytest.approx(1.0)
        assert weights[:n_states] @ chosen == pytest.approx(belief, abs=1e-12)
    for number, point in enumerate(builder.points[3]):
        padded[:n_states] = point
        kernel.locate(grid, 3, padded, vertices, weights)
        assert weights[vertices == number].max() == pytest.approx(1.0)


def test_the_triangulation_covers_the_simplex():
    rng = np.random.default_rng(5)
    for n_states in (2, 3, 4):
        points = np.concatenate([np.eye(n_states), rng.dirichlet(np.ones(n_states), size=15)])
        volumes = np.abs(np.linalg.det(points[_triangulation(points)]))
        assert volumes.sum() == pytest.approx(1.0)


def test_a_grid_of_corners_gives_the_values_with_free_looks():
    model = am.problems.k_out_of_n(2, 1, hard=True)
    grid = tensor_grid(model, Budget(), levels=())
    free = am.q_mdp(model).max(axis=1)
    assert grid.bound(am.Belief.at(3)) == pytest.approx(free[3], rel=1e-3)
    assert grid.start_bound == pytest.approx(float(model.initial_distribution @ free), rel=1e-3)
    assert grid.start_bound >= float(model.initial_distribution @ free) - 1e-9


#: Bounds on the optimal cost that are known: no policy costs less than the first, and one that costs the second is known.
KNOWN = {
    (2, 1, False): (53.7198, 53.7203),
    (2, 2, False): (193.46545, 193.46552),
    (3, 1, False): (46.686, 46.696),
    (3, 2, False): (144.969, 145.030),
    (3, 3, False): (424.073, 424.158),
    (4, 1, False): (34.668, 34.680),
    (4, 2, False): (101.74, 102.02),
    (4, 3, False): (232.16, 232.54),
    (4, 4, False): (559.09, 559.88),
    (4, 1, True): (51.779, 51.805),
    (4, 2, True): (140.96, 141.25),
    (4, 3, True): (308.05, 308.73),
    (4, 4, True): (751.6, 755.5),
}


@pytest.mark.parametrize(
    "instance",
    [case if case == (2, 1, False) else pytest.param(case, marks=pytest.mark.slow) for case in KNOWN],
)
def test_published_instances(instance):
    model = am.problems.k_out_of_n(*instance)
    grid = tensor_grid(model, Budget())
    low, high = KNOWN[instance]
    assert 0.98 * low <= -grid.start_bound <= high
    assert grid.bound(am.Belief.start(model)) == pytest.approx(grid.start_bound, rel=1e-12)


class TestSweeps:
    model = am.problems.k_out_of_n(2, 1)

    def test_bounds_never_rise(self):
        record = tensor_grid(self.model, Budget(), levels=(8, 16)).record
        assert len({points for points, _ in record}) == 3
        for (points, bound), (points_after, bound_after) in pairwise(record):
            assert bound_after <= bound or points_after > points

    def test_every_sweep_is_sound_and_the_last_is_the_tightest(self):
        grid = tensor_grid(self.model, Budget(), levels=(8, 16))
        bounds = [bound for _, bound in grid.record]
        assert min(bounds) == grid.start_bound
        assert min(bounds) >= -53.7203

    def test_a_budget_ends_it_soundly(self):
        stopped = tensor_grid(self.model, Budget(seconds=1e-9))
        assert len(stopped.record) == 1
        assert stopped.start_bound >= tensor_grid(self.model, Budget(), levels=(8,)).start_bound
        short = tensor_grid(am.problems.k_out_of_n(4, 2), Budget(seconds=0.5))
        assert short.start_bound >= -102.02

    def test_the_same_seed_gives_the_same_bounds(self):
        first, second = (tensor_grid(self.model, Budget(), levels=(8, 16), seed=3) for _ in range(2))
        assert first.record == second.record
        assert np.array_equal(first.kernel.values, second.kernel.values)

    def test_more_points_are_tighter(self):
        few, many = (tensor_grid(self.model, Budget(), levels=levels).start_bound for levels in [(8,), (8, 40)])
        assert many < few


def test_bounds_at_beliefs_are_those_of_the_kernel():
    model = am.problems.k_out_of_n(3, 2)
    grid = tensor_grid(model, Budget(), levels=(8,))
    belief = am.Belief.start(model).update(model, *model.decision(("inspect", "replace", "nothing")), "damaged")
    states, probabilities = np.zeros(50, np.int64), np.zeros(50)
    states[7 : 7 + len(belief.states)], probabilities[7 : 7 + len(belief.states)] = belief.states, belief.probabilities
    assert kernel.grid_bound(grid.kernel, states, probabilities, 7, len(belief.states)) == grid.bound(belief)


def test_a_model_without_factors_is_refused():
    with pytest.raises(am.PlanError, match="needs the factors of a system of independent components"):
        tensor_grid(am.problems.chain(), Budget())
