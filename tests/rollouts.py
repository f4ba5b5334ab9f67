"""What an environment returns when it is reset and stepped."""


def rollout(env, actions, seed):
    """Return what `reset` and `step` return for some actions; episodes that end are followed by a new one."""
    steps = [env.reset(seed=seed)]
    for action in actions:
        steps.append(env.step(action))
        if steps[-1][2] or steps[-1][3]:
            steps.append(env.reset())
    return steps
