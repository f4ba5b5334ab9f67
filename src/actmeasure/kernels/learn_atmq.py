"""Act-then-measure Q-learning on a model, many episodes at a time."""

from __future__ import annotations

from typing import Any

from actmeasure.kernels.atmq import NOTHING, Mind, Rules, begin, decide, needs_room, observe
from actmeasure.kernels.jit import lean
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.streams import AGENT, WORLD, seed_stream

#: Where a run is: the episode in the record, the state of the world, and whether the episode is still running.
EPISODE, STATE, RUNNING = 0, 1, 2


@lean
def run(
    world: World,
    mind: Mind,
    rules: Rules,
    start_states: Any,
    start_probabilities: Any,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    place: Any,
    world_stream: Any,
    agent_stream: Any,
) -> bool:
    """Episodes `first_episode` and on. False if the mind needs more room; call again with it, and the same place (int64 (3,))."""
    n_actions = world.dynamics.n_actions
    while place[EPISODE] < record.steps.shape[0]:
        episode = place[EPISODE]
        if not place[RUNNING]:
            seed_stream(world_stream, entropy, first_episode + episode, WORLD)
            seed_stream(agent_stream, entropy, first_episode + episode, AGENT)
            place[STATE] = first_state(world, world_stream)
            shown = place[STATE] if world.reveal_start else NOTHING
            begin(mind, shown, start_states, start_probabilities, agent_stream)
            place[RUNNING] = True
        while place[RUNNING] and record.steps[episode] < max_steps:
            if needs_room(mind):
                return False
            action, measure = decide(mind, rules, agent_stream)
            cost = world.dynamics.costs[place[STATE] * n_actions + action] if measure else 0.0
            place[STATE], reward, ended = move(world, place[STATE], action, world_stream)
            write(record, episode, reward, cost, measure, ended)
            observe(mind, rules, reward, cost, place[STATE] if measure else NOTHING, ended, agent_stream)
            place[RUNNING] = not ended
        place[RUNNING] = False
        place[EPISODE] += 1
    return True
