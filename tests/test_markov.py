"""Linear systems of chains: sweeps give what factors give, where these take long; rare moves keep their digits."""

from fractions import Fraction

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


# Rare moves: averages and probabilities keep their digits.


def exactly(chain):
    """Stationary distribution of an irreducible chain in rational numbers, by Gauss-Jordan elimination."""
    n = len(chain)
    rows = [[Fraction(float(entry)) for entry in row] for row in chain]
    rows = [[entry / sum(row) for entry in row] for row in rows]
    # x (P - I) = 0 with the last equation replaced by sum x = 1.
    system = [[rows[j][i] - (i == j) for j in range(n)] + [Fraction(0)] for i in range(n - 1)]
    system.append([Fraction(1)] * (n + 1))
    for k in range(n):
        pivot = next(i for i in range(k, n) if system[i][k])
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [entry / system[k][k] for entry in system[k]]
        for i in range(n):
            if i != k and system[i][k]:
                system[i] = [a - system[i][k] * b for a, b in zip(system[i], system[k], strict=True)]
    return np.array([float(row[-1]) for row in system])


@pytest.mark.parametrize("rare", [1e-7, 1e-12, 1e-17, 1e-40])
@pytest.mark.parametrize("seed", range(5))
def test_stationary_distributions_keep_their_digits_where_moves_are_rare(rare, seed):
    """Three groups that are left with chances of the order of `rare`."""
    rng = np.random.default_rng(seed)
    chain = rng.random((9, 9)) * np.where(np.equal.outer(np.arange(9) // 3, np.arange(9) // 3), 1.0, rare)
    chain /= chain.sum(axis=1, keepdims=True)
    found = markov._stationary(sparse.csr_array(chain))
    assert found == pytest.approx(exactly(chain), rel=1e-12)


@pytest.mark.parametrize("rare", [1e-7, 1e-9, 1e-13, 1e-20])
def test_closed_classes_are_reached_with_their_probabilities_however_rare_the_moves(rare):
    """Two states change places until one of them leaves, three times as often for the second class as for the first."""
    chain = np.zeros((4, 4))
    chain[0, :2] = 0.5
    chain[1] = 0.5, 0.5 - 4 * rare, rare, 3 * rare
    chain[2, 2] = chain[3, 3] = 1.0
    ending = np.zeros(4)
    found = markov.recurrence(sparse.csr_array(chain), ending, np.array([0.5, 0.25, 0.125, 0.125]))
    assert found.probability[found.class_of_node[2:]] == pytest.approx([0.3125, 0.6875], rel=1e-14)
    # With an end in the first state, of probability 0.1: v_1 = 4 rare + 0.5 v_0 + (0.5 - 4 rare) v_1, v_0 = 0.45 (v_0 + v_1).
    chain[0, :2], ending[0] = 0.45, 0.1
    found = markov.recurrence(sparse.csr_array(chain), ending, np.array([1.0, 0.0, 0.0, 0.0]))
    value = 4 * rare / (0.5 * (1 - 0.45 / 0.55) + 4 * rare) * 0.45 / 0.55
    assert found.probability[found.class_of_node[2:]] == pytest.approx([value / 4, value * 3 / 4], rel=1e-13, abs=0.0)


@pytest.mark.parametrize("leaves", [0.5, 2e-3, 1e-4, 1e-9, 1e-17])
def test_digits_are_lost_where_a_node_is_left_after_many_moves(leaves):
    """A node that is left with the probability `leaves`, and one that is reached from there."""
    chain = sparse.csr_array(np.array([[1 - leaves - 1e-5, 1e-5], [0.0, 0.0]]))
    assert markov._loses_digits(chain, np.array([leaves, 1.0]), np.arange(2)) == (leaves < 1 / markov.MANY)


def test_digits_are_lost_where_a_move_is_rare():
    for rare in (1e-5, 1e-9):
        chain = sparse.csr_array(np.array([[0.5 - rare, rare], [0.0, 0.0]]))
        assert markov._loses_digits(chain, np.array([0.5, 1.0]), np.arange(2)) == (rare < markov.RARE)


def test_a_chance_that_is_lost_is_said():
    with pytest.raises(markov.RoundingError, match="a chance so small that it is lost in rounding"):
        markov._eliminate(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]), 1, 2)
