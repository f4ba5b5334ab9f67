"""Well-known POMDPs as `.pomdp` text in the usual style of such files, and as arrays."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

#: Cassandra, Kaelbling and Littman's tiger, with wild cards, matrices and the keywords `uniform` and `identity`.
TIGER = """
# Behind one of two doors is a tiger; listening tells which, most of the time.
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: tiger-left tiger-right

T:listen
identity

T:open-left
uniform

T:open-right
uniform

O:listen
0.85 0.15
0.15 0.85

O:open-left
uniform

O:open-right
uniform

R:listen : * : * : * -1
R:open-left : tiger-left : * : * -100
R:open-left : tiger-right : * : * 10
R:open-right : tiger-left : * : * 10
R:open-right : tiger-right : * : * -100
"""


def tiger_arrays():
    """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution of the tiger problem."""
    P = np.stack([np.eye(2), np.full((2, 2), 0.5), np.full((2, 2), 0.5)], axis=1)
    R = np.array([[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]])
    Z = np.stack([[[0.85, 0.15], [0.15, 0.85]], np.full((2, 2), 0.5), np.full((2, 2), 0.5)])
    return P, R, Z, np.full(2, 0.5)


class RockSample:
    """RockSample(n, k): a rover on an n x n grid with k rocks, good or bad; it samples them, senses them, or leaves to the east.

    States are (cell, qualities), then the exit. Sensing rock i from distance d is right with probability (1 + 2^(-d / half)) / 2.
    Sampling pays 10 at a good rock, which becomes bad, and -10 otherwise; leaving pays 10.
    """

    MOVES: ClassVar = {"amn": (0, 1), "ams": (0, -1), "ame": (1, 0), "amw": (-1, 0)}

    def __init__(self, n, k, half=4.0):
        self.n, self.k = n, k
        cells = [(x, y) for y in range(n) for x in range(n)]
        self.rocks = cells[1 :: max(1, len(cells) // (k + 1))][:k]
        self.states = list(itertools.product(cells, itertools.product((0, 1), repeat=k)))
        self.number = {state: index for index, state in enumerate(self.states)}
        self.actions = [*self.MOVES, "as", *(f"ac{rock}" for rock in range(k))]
        self.observations = ["ogood", "obad", "onone"]
        self.n_states = len(self.states) + 1
        self.half = half

    def successor(self, state, action):
        """The state that follows, and the reward; the last state is the exit."""
        (x, y), good = self.states[state]
        if action == "as":
            rock = self.rocks.index((x, y)) if (x, y) in self.rocks else -1
            if rock < 0 or not good[rock]:
                return state, -10.0
            return self.number[(x, y), tuple(q and i != rock for i, q in enumerate(good))], 10.0
        if action in self.MOVES:
            x, y = x + self.MOVES[action][0], y + self.MOVES[action][1]
            if x == self.n:
                return self.n_states - 1, 10.0
            return self.number[(min(max(x, 0), self.n - 1), min(max(y, 0), self.n - 1)), good], 0.0
        return state, 0.0

    def sees_good(self, state, rock):
        (x, y), good = self.states[state]
        distance = np.hypot(x - self.rocks[rock][0], y - self.rocks[rock][1])
        right = (1 + 2 ** (-distance / self.half)) / 2
        return float(right if good[rock] else 1 - right)

    def start(self):
        first = [state for state, (cell, _) in enumerate(self.states) if cell == (0, self.n // 2)]
        initial = np.zeros(self.n_states)
        initial[first] = 1 / len(first)
        return initial

    def text(self):
        """The file, with defaults by wild cards that later lines override, states as a count, and rewards by successor."""
        yield f"# RockSample[{self.n},{self.k}]\ndiscount: 0.95\nvalues: reward\nstates: {self.n_states}\n"
        yield f"actions: {' '.join(self.actions)}\nobservations: {' '.join(self.observations)}\n"
        starts = [str(state) for state in np.flatnonzero(self.start())]
        yield f"start include: {' '.join(starts)}\n\nT: * identity\n"
        yield "O: * : * : onone 1.0\n"
        for action in self.actions:
            for state in range(self.n_states - 1):
                successor, reward = self.successor(state, action)
                if successor != state:
                    yield f"T: {action} : {state} : {state} 0.0\nT: {action} : {state} : {successor} 1.0\n"
                if reward:
                    yield f"R: {action} : {state} : {successor} : * {reward}\n"
        for rock in range(self.k):
            for state in range(self.n_states - 1):
                good = self.sees_good(state, rock)
                yield f"O: ac{rock} : {state}\n{good!r} {1 - good!r} 0.0\n"

    def arrays(self):
        """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution."""
        n_actions = len(self.actions)
        P, R = np.zeros((self.n_states, n_actions, self.n_states)), np.zeros((self.n_states, n_actions))
        Z = np.zeros((n_actions, self.n_states, 3))
        Z[:, :, 2] = 1.0
        P[-1, :, -1] = 1.0
        for state in range(self.n_states - 1):
            for number, action in enumerate(self.actions):
                successor, R[state, number] = self.successor(state, action)
                P[state, number, successor] = 1.0
            for rock in range(self.k):
                good = self.sees_good(state, rock)
                Z[5 + rock, state] = good, 1 - good, 0.0
        return P, R, Z, self.start()


def tag_like(rng, n_states=870, n_actions=5, n_observations=30, successors=5):
    """The lines of a random POMDP of Tag's size, one transition to a line."""
    yield f"discount: 0.95\nvalues: reward\nstates: {n_states}\nactions: {n_actions}\nobservations: {n_observations}\n"
    yield "start: uniform\n"
    for action in range(n_actions):
        for state in range(n_states):
            to = np.sort(rng.choice(n_states, successors, replace=False))
            chances = rng.dirichlet(np.ones(successors))
            for successor, chance in zip(to.tolist(), chances.tolist(), strict=True):
                yield f"T: {action} : {state} : {successor} {chance!r}\n"
    for state in range(n_states):
        yield f"O: * : {state} : {state % n_observations} 1.0\n"
    yield "R: * : * : * : * -1\n"
    for state in range(0, n_states, 30):
        yield f"R: {n_actions - 1} : {state} : * : * 10\n"


class Hallway:
    """A robot in a corridor with rooms beside it, like Littman, Cassandra and Kaelbling's Hallway: it turns, moves, sees walls.

    States are (cell, heading), then the goal. Moves fail with probability `noise`; of the four walls around it each is reported
    wrongly with probability 0.1. Reaching the goal pays 1, and from there every action leads back to the start.
    """

    ACTIONS: ClassVar = ("stay", "forward", "left", "right")
    HEADINGS: ClassVar = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self, length, noise=0.2, error=0.1):
        self.length, self.noise, self.error = length, noise, error
        self.cells = [(x, 0) for x in range(length)] + [(x, -1) for x in range(1, length, 2)]
        self.n_states = 4 * len(self.cells) + 1
        self.goal = self.n_states - 1
        self.end_cell = self.cells[-1]

    def __repr__(self):
        return f"Hallway({self.length}, {self.noise})"

    def moved(self, state, action):
        """The state after an action that succeeds."""
        if state == self.goal:
            return None
        cell, heading = divmod(state, 4)
        if action == 1:
            x, y = self.cells[cell]
            to = (x + self.HEADINGS[heading][0], y + self.HEADINGS[heading][1])
            if to == self.end_cell:
                return self.goal
            return 4 * self.cells.index(to) + heading if to in self.cells else state
        turn = {0: 0, 2: 3, 3: 1}[action]
        return 4 * cell + (heading + turn) % 4

    def walls(self, state):
        """Whether there is a wall in front, to the right, behind and to the left."""
        cell, heading = divmod(state, 4)
        x, y = self.cells[cell]
        around = [self.HEADINGS[(heading + turn) % 4] for turn in range(4)]
        return [(x + dx, y + dy) not in self.cells for dx, dy in around]

    def seen(self, state):
        """Probability of each of the 16 reports of walls, and of the star at the goal."""
        if state == self.goal:
            return np.eye(17)[16]
        chances = np.ones(1)
        for wall in self.walls(state):
            right = [self.error, 1 - self.error] if wall else [1 - self.error, self.error]
            chances = np.outer(chances, right).ravel()
        return np.append(chances, 0.0)

    def start(self):
        first = np.ones(self.n_states)
        first[self.goal] = 0.0
        first[-5:-1] = 0.0  # not next to the goal
        return first / first.sum()

    def text(self):
        """The file: counted states, vectors of transitions and observations, `reset` at the goal, `start exclude`."""
        yield f"# A corridor\n\ndiscount: 0.950000\nvalues: reward\nstates: {self.n_states}\nactions: {' '.join(self.ACTIONS)}\n"
        yield "observations: 17\n\n"
        yield f"start exclude: {' '.join(str(s) for s in range(self.n_states - 5, self.n_states))}\n\n"
        for action in range(4):
            for state in range(self.goal):
                row = np.zeros(self.n_states)
                row[state] += self.noise
                row[self.moved(state, action)] += 1 - self.noise
                yield f"T: {action} : {state}\n{' '.join(f'{chance:.6f}' for chance in row)}\n"
        yield f"T: * : {self.goal} reset\n\n"
        for state in range(self.n_states):
            yield f"O: * : {state}\n{' '.join(repr(float(chance)) for chance in self.seen(state))}\n"
        yield f"\nR: * : * : {self.goal} : * 1.000000\nR: * : {self.goal} : * : * 0\n"

    def arrays(self):
        """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution."""
        P = np.zeros((self.n_states, 4, self.n_states))
        for state in range(self.goal):
            for action in range(4):
                P[state, action, state] += self.noise
                P[state, action, self.moved(state, action)] += 1 - self.noise
        P[self.goal] = self.start()
        R = P[:, :, self.goal].copy()
        R[self.goal] = 0.0
        Z = np.stack([np.stack([self.seen(state) for state in range(self.n_states)])] * 4)
        return P, R, Z, self.start()


class Tag:
    """Tag (Pineau, Gordon and Thrun): a robot has to tag an opponent who runs away, on a grid of any shape.

    States are (robot, opponent), opponent being a cell or tagged. The robot sees its own cell, or that the opponent is there.
    Moves cost 1, a tag pays 10 where both are in one cell and costs 10 otherwise. The opponent stays with probability 0.2 and
    otherwise moves away, each direction that does not come nearer being equally likely.
    """

    ACTIONS: ClassVar = ("North", "South", "East", "West", "Tag")
    MOVES: ClassVar = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def __init__(self, width, height, cells=None):
        self.cells = cells or [(x, y) for y in range(height) for x in range(width)]
        self.name = f"Tag({width}, {height})"
        self.tagged = len(self.cells)
        self.n_states = len(self.cells) * (len(self.cells) + 1)
        self.observations = [f"o{x}-{y}" for x, y in self.cells] + ["here"]

    def __repr__(self):
        return self.name

    @classmethod
    def published(cls):
        """The grid of 29 cells: two rows of ten with a tower of three by three in the middle."""
        return cls(
            10, 5, [(x, y) for y in range(2) for x in range(10)] + [(x, y) for y in (2, 3, 4) for x in (5, 6, 7)]
        )

    def number(self, robot, opponent):
        return robot * (len(self.cells) + 1) + opponent

    def runs(self, robot, opponent):
        """Probability of each cell of the opponent after a step."""
        x, y = self.cells[opponent]
        rx, ry = self.cells[robot]
        away = []
        for dx, dy in self.MOVES:
            if (dx and (x - rx) * dx >= 0) or (dy and (y - ry) * dy >= 0):
                to = (x + dx, y + dy)
                away.append(self.cells.index(to) if to in self.cells else opponent)
        chances = np.zeros(len(self.cells))
        chances[opponent] += 0.2
        for cell in away:
            chances[cell] += 0.8 / len(away)
        return chances

    def row(self, state, action):
        """Successors and their probabilities, and the reward."""
        robot, opponent = divmod(state, len(self.cells) + 1)
        if opponent == self.tagged:
            return {state: 1.0}, 0.0
        if action == 4 and robot == opponent:
            return {self.number(robot, self.tagged): 1.0}, 10.0
        to = robot
        if action < 4:
            x, y = self.cells[robot]
            cell = (x + self.MOVES[action][0], y + self.MOVES[action][1])
            to = self.cells.index(cell) if cell in self.cells else robot
        chances = self.runs(robot, opponent)
        row = {self.number(to, int(cell)): float(chances[cell]) for cell in np.flatnonzero(chances)}
        return row, -10.0 if action == 4 else -1.0

    def sees(self, state):
        robot, opponent = divmod(state, len(self.cells) + 1)
        return len(self.cells) if robot == opponent else robot

    def start(self):
        running = np.array([state % (len(self.cells) + 1) != self.tagged for state in range(self.n_states)])
        return running / running.sum()

    def text(self):
        """The file: named states, one line for each transition, wild cards for rewards that later lines override, costs."""
        names = [f"s{robot}_{other}" for robot in range(len(self.cells)) for other in range(len(self.cells) + 1)]
        yield f"discount: 0.95\nvalues: cost\nactions: {' '.join(self.ACTIONS)}\nobservations: {' '.join(self.observations)}\n"
        yield f"states: {' '.join(names)}\n"
        yield f"start include: {' '.join(names[s] for s in np.flatnonzero(self.start()))}\n"
        yield "T: * identity\nR: * : * : * : * 1\nR: Tag : * : * : * 10.0\n"
        for state, name in enumerate(names):
            yield f"O: * : {name} : {self.observations[self.sees(state)]} 1\n"
            if state % (len(self.cells) + 1) == self.tagged:
                yield f"R: * : {name} : * : * 0\n"
                continue
            for action, word in enumerate(self.ACTIONS):
                row, reward = self.row(state, action)
                yield f"T: {word} : {name} : * 0\n"
                yield from (f"T: {word} : {name} : {names[to]} {chance!r}\n" for to, chance in row.items())
                if reward > 0:
                    yield f"R: {word} : {name} : * : * {-reward}\n"

    def arrays(self):
        """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution."""
        P, R = np.zeros((self.n_states, 5, self.n_states)), np.zeros((self.n_states, 5))
        for state in range(self.n_states):
            for action in range(5):
                row, R[state, action] = self.row(state, action)
                for to, chance in row.items():
                    P[state, action, to] = chance
        Z = np.zeros((5, self.n_states, len(self.observations)))
        for state in range(self.n_states):
            Z[:, state, self.sees(state)] = 1.0
        return P, R, Z, self.start()


def hallway_like(length=9, slip=0.1, error=0.05):
    """The lines of a hallway: a robot knows neither its cell nor its heading, and sees the walls around it with errors.

    States are (cell, heading), headings east, south, west and north, and a goal, after which it starts anew. Observations are the
    four walls around the robot, each wrong with probability `error`, and the goal.
    """
    doors = {length // 3, 2 * length // 3}
    n_states = 4 * length + 1
    goal = n_states - 1
    yield f"# A hallway\ndiscount: 0.95\nvalues: reward\nstates: {n_states}\nactions: stay forward left right\nobservations: 17\n"
    yield f"start exclude: {goal}\n"
    yield f"T: * : {goal}\n{' '.join(repr(1 / (n_states - 1)) for _ in range(n_states - 1))} 0.0\n"

    def walls(cell, heading):
        around = [cell == length - 1, cell not in doors, cell == 0, True]  # east, south, west, north
        return [around[(heading + turn) % 4] for turn in range(4)]

    for cell, heading in itertools.product(range(length), range(4)):
        state = 4 * cell + heading
        ahead = state
        if heading == 0 and cell < length - 1:
            ahead = state + 4
        elif heading == 2 and cell > 0:
            ahead = state - 4
        elif heading == 1 and cell == 2 * length // 3:
            ahead = goal
        yield f"T: stay : {state} : {state} 1.0\n"
        moves = {"forward": ahead, "left": 4 * cell + (heading - 1) % 4, "right": 4 * cell + (heading + 1) % 4}
        for action, successor in moves.items():
            if successor == state:
                yield f"T: {action} : {state} : {state} 1.0\n"
            else:
                yield f"T: {action} : {state} : {successor} {1 - slip!r}\nT: {action} : {state} : {state} {slip!r}\n"
        for seen in itertools.product((0, 1), repeat=4):
            chance = np.prod(
                [1 - error if bool(s) == w else error for s, w in zip(seen, walls(cell, heading), strict=True)]
            )
            number = sum(bit << place for place, bit in enumerate(seen))
            yield f"O: * : {state} : {number} {float(chance)!r}\n"
    yield f"O: * : {goal} : 16 1.0\nR: * : * : {goal} : * 1.0\n"
