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


#: Intensities of a disease with three stages that can improve, and death.
Q = np.array([[-0.3, 0.25, 0.0, 0.05], [0.1, -0.5, 0.3, 0.1], [0.0, 0.1, -0.5, 0.4], [0.0, 0.0, 0.0, 0.0]])


def visits(units, rng, exact, errors=None, most=8, q=Q, shortest=100, longest=900):
    """Records in continuous time, with gaps of whole days in years; states are 1, 2, ...

    With `exact`, the moment of entering the last state is recorded and ends the records; `errors` are chances of wrong records of
    the other states.
    """
    last = len(q) - 1
    columns = {"unit": [], "time": [], "state": []}

    def add(unit, time, state):
        if errors is not None and not (exact and state == last):
            state = int(rng.choice(len(q), p=errors[state]))
        for name, value in zip(columns, (unit, time, str(state + 1)), strict=True):
            columns[name].append(value)

    for unit in range(units):
        times = np.r_[0, rng.integers(shortest, longest, size=most)].cumsum() / 365.2425
        state, time, visit = int(rng.integers(2)), 0.0, 0
        while visit < len(times):
            rate = -q[state, state]
            leaves = time + (rng.exponential(1 / rate) if rate else np.inf)
            while visit < len(times) and times[visit] < leaves:
                add(unit, times[visit], state)
                visit += 1
            if visit == len(times):
                break
            chances = np.where(np.arange(len(q)) == state, 0, q[state])
            time, state = leaves, int(rng.choice(len(q), p=chances / chances.sum()))
            if exact and state == last:
                add(unit, time, state)
                break
    return columns
