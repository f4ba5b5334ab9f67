"""Lakes: Gymnasium's own dynamics, the semi-slippery rule cell by cell, and maps."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import MAPS
from scipy import ndimage

import actmeasure as am

MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("slippery", [False, True])
def test_deterministic_and_slippery_are_gymnasiums(size, slippery):
    env = gymnasium.make("FrozenLake-v1", map_name=f"{size}x{size}", is_slippery=slippery).unwrapped
    model = am.problems.frozen_lake(size, "slippery" if slippery else "deterministic")
    dense, rewards = model.transitions.dense(), model.rewards
    for state in np.flatnonzero(~model.terminal):
        for action in range(4):
            theirs, reward = np.zeros(size * size), 0.0
            for p, to, r, done in env.P[int(state)][action]:
                theirs[to] += p
                reward += p * r
                assert model.terminal[to] == done
            assert dense[state, action] == pytest.approx(theirs, abs=1e-12)
            assert rewards[state, action] == pytest.approx(reward, abs=1e-12)


@pytest.mark.parametrize(
    "settings", [{"size": 4}, {"size": 8}, {"size": 13, "seed": 5}, {"map": ["SFFH", "FHFF", "FFFG"]}]
)
def test_semi_slippery_cell_by_cell(settings):
    """Move one; on a hole or the goal stop there, otherwise move one more with probability 1/2; walls clamp."""
    model = am.problems.frozen_lake(variant="semi-slippery", **settings)
    rows = settings.get("map") or (
        MAPS.get(f"{settings['size']}x{settings['size']}") if "seed" not in settings else None
    )
    if rows is None:
        from actmeasure.problems.frozen_lake import lake_map

        rows = ["".join(row) for row in lake_map(settings["size"], None, settings["seed"])]
    height, width = len(rows), len(rows[0])

    def step(cell, move):
        return min(max(cell[0] + move[0], 0), height - 1), min(max(cell[1] + move[1], 0), width - 1)

    dense = model.transitions.dense()
    for row in range(height):
        for column in range(width):
            state = row * width + column
            assert model.terminal[state] == (rows[row][column] in "HG")
            if model.terminal[state]:
                continue
            for action, move in enumerate(MOVES):
                one = step((row, column), move)
                two = one if rows[one[0]][one[1]] in "HG" else step(one, move)
                expected = np.zeros(height * width)
                for cell in (one, two):
                    expected[cell[0] * width + cell[1]] += 0.5
                assert dense[state, action] == pytest.approx(expected, abs=1e-15)
                paid = sum(0.5 for cell in (one, two) if rows[cell[0]][cell[1]] == "G")
                assert model.rewards[state, action] == paid


def test_random_maps_are_reproducible_connected_and_have_a_fifth_of_holes():
    from actmeasure.problems.frozen_lake import lake_map

    shares = []
    for seed in range(30):
        cells = lake_map(20, None, seed)
        assert (cells == lake_map(20, None, seed)).all()
        regions, _ = ndimage.label(cells != "H")
        assert regions[0, 0] == regions[-1, -1] > 0
        assert (cells[0, 0], cells[-1, -1]) == ("S", "G")
        shares.append((cells == "H").mean())
    assert np.mean(shares) == pytest.approx(0.2, abs=4 * 0.02 / np.sqrt(30))
    assert not (lake_map(20, None, 0) == lake_map(20, None, 1)).all()


def test_sizes_and_starts():
    assert am.problems.frozen_lake().n_states == 16
    assert am.problems.frozen_lake(8).n_states == 64
    two = am.problems.frozen_lake(map=["SFS", "FFG"])
    assert two.initial_distribution.tolist() == [0.5, 0, 0.5, 0, 0, 0]
    assert am.problems.frozen_lake(4).action_names == ("left", "down", "right", "up")


def test_maps_as_arrays():
    rows = ["SFH", "FFG"]
    for given in (np.array(rows), np.array([list(row) for row in rows])):
        assert am.problems.frozen_lake(map=given) == am.problems.frozen_lake(map=rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 10}, "no standard 10x10 map.*pass seed=0"),
        ({"size": 1}, "size is 1"),
        ({"size": 4.5, "seed": 1}, "size is 4.5"),
        ({"variant": "semislippery"}, "did you mean 'semi-slippery'"),
        ({"map": ["SF", "G"]}, "rows have lengths"),
        ({"map": ["SX", "FG"]}, "'X' in row 0, column 1"),
        ({"map": ["FF", "FG"]}, "no start"),
        ({"map": ["SF", "FF"]}, "no goal"),
        ({"map": "SFFG"}, "expected a list of strings"),
        ({"map": ["SG"], "seed": 1}, "not both"),
        ({"map": 5}, "map is 5, expected a list of strings"),
        ({"map": [5]}, "expected a list of strings"),
        ({"map": np.array([1, 2])}, "expected a list of strings"),
        ({"seed": -1}, "seed is -1, expected a whole number from 0 up"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(am.ModelError, match=message):
        am.problems.frozen_lake(**settings)
