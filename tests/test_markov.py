"""Large linear systems: sweeps give what factors give, and factors are there where sweeps take too long."""

import numpy as np
import pytest
from scipy import sparse

from actmeasure import markov

N = markov.LARGE + 500


def system(ending, seed=0):
    """A chain in which every node leads to eight others by chance, and ends with some probability."""
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(N), 8), rng.integers(0, N, 8 * N)
    moves = sparse.csr_array((np.full(8 * N, (1 - ending) / 8), (rows, columns)), shape=(N, N))
    return sparse.eye_array(N) - moves


@pytest.mark.parametrize("ending", [0.5, 0.05])
def test_nothing_is_left_over(ending):
    matrix, right = system(ending), np.random.default_rng(1).normal(size=(N, 3))
    for side in (matrix, matrix.T):
        found = markov._solve_by_sweeps(sparse.csr_array(side), right)
        assert np.abs(side @ found - right).max() <= 1e-11 * np.abs(found).max()
        assert found.shape == right.shape


def test_a_sum_that_is_known():
    """Where every step pays 1 and the chain ends with 4 %, 25 is expected from everywhere; also as one column."""
    matrix = system(0.04)
    assert markov._solve(matrix, np.ones(N)) == pytest.approx(np.full(N, 25.0), rel=1e-10)
    assert markov._solve(matrix, np.ones((N, 1))).shape == (N, 1)


@pytest.mark.parametrize("ending", [0.001, 0.0001])
def test_slow_sweeps_are_left_for_factors(ending):
    assert markov._solve_by_sweeps(sparse.csr_array(system(ending)), np.ones(N)) is None


def test_factors_where_sweeps_would_take_as_many_as_a_way_has_nodes():
    way = sparse.eye_array(N) - sparse.diags_array(np.ones(N - 1), offsets=1, shape=(N, N))
    assert markov._solve_by_sweeps(sparse.csr_array(way), np.ones(N)) is None
    assert markov._solve(way, np.ones(N)) == pytest.approx(np.arange(N, 0, -1.0), rel=1e-12)


def test_small_systems_are_factored(monkeypatch):
    monkeypatch.setattr(markov, "_solve_by_sweeps", None)  # would be an error to call
    assert markov._solve(sparse.csc_array(np.array([[2.0]])), np.ones(1)) == pytest.approx([0.5])
