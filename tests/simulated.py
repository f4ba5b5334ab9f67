"""Records of units that move by known chances."""

import numpy as np

ACTIONS = ("nothing", "repair")
#: Five states that get worse, and a repair that mostly leads back to the first.
WEAR = np.array([
    [0.9, 0.1, 0.0, 0.0, 0.0], [0.0, 0.85, 0.15, 0.0, 0.0], [0.0, 0.0, 0.8, 0.2, 0.0],
    [0.0, 0.0, 0.0, 0.7, 0.3], [0.0, 0.0, 0.0, 0.0, 1.0],
])  # fmt: skip
REPAIR = np.tile([0.7, 0.25, 0.05, 0.0, 0.0], (5, 1))
CHAINS = np.stack([WEAR, REPAIR])


def records(chains, units, periods, rng, longest_gap=5, repairs=0.15, starts=2):
    """A row for every period, the state only where somebody looked: after gaps of 1 to `longest_gap` periods."""
    chances = np.asarray(chains).cumsum(axis=2)
    columns = {"unit": [], "time": [], "state": [], "action": []}
    for unit in range(units):
        state, next_look = int(rng.integers(starts)), 0
        for time in range(periods):
            looks = time == next_look
            if looks:
                next_look = time + int(rng.integers(1, longest_gap + 1))
            action = int(len(chances) > 1 and rng.random() < repairs)
            columns["unit"].append(f"u{unit}")
            columns["time"].append(time)
            columns["state"].append(str(state) if looks else "")
            columns["action"].append(ACTIONS[action])
            state = int(np.searchsorted(chances[action, state], rng.random(), side="right"))
    return columns


def write_csv(path, columns):
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path
