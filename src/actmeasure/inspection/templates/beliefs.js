// Beliefs along a plan, step by step.

/** The action of a step; after the end of the plan its last action. */
function actionAt(plan, step) {
  const count = plan.actions.length;
  if (step < count) return plan.actions[step];
  return plan.then === 'repeat' ? plan.actions[count - plan.repeat + ((step - count) % plan.repeat)] : plan.actions[count - 1];
}

/** Beliefs before the first step and after each: maps from states to probabilities; the rest to 1 is the end of the episode. */
function follow(moves, plan, first) {
  const beliefs = [first];
  for (let step = 0; step < plan.shown; step += 1) {
    const action = actionAt(plan, step);
    const after = new Map();
    for (const [state, weight] of beliefs[step]) {
      const [successors, chances] = moves.rows[state + ',' + action];
      successors.forEach((successor, n) => after.set(successor, (after.get(successor) || 0) + weight * chances[n]));
    }
    beliefs.push(after);
  }
  return beliefs;
}

/** The belief before the first step of a row's plan. */
function firstBelief(moves, row) {
  if (row.state !== null) return new Map([[moves.numbers.indexOf(row.state), 1]]);
  return new Map(moves.start[0].map((state, n) => [state, moves.start[1][n]]));
}

/** Up to `most` bands of states in their order, one of all others, and one of ended episodes: [{name, values, kind}].
    States of `moves.kept` are not among the others. */
function bands(moves, beliefs, most) {
  const peaks = new Map();
  for (const belief of beliefs) {
    for (const [state, weight] of belief) peaks.set(state, Math.max(weight, peaks.get(state) || 0));
  }
  const isKept = (state) => (moves.kept && moves.kept.has(state) ? 1 : 0);
  const likely = [...peaks.keys()].filter((state) => peaks.get(state) > 1e-9).sort((a, b) => isKept(b) - isKept(a) || peaks.get(b) - peaks.get(a));
  const named = likely.slice(0, likely.length > most ? most - 1 : most).sort((a, b) => a - b);
  const found = named.map((state) => ({
    name: moves.names[state], kind: 'state', values: beliefs.map((belief) => belief.get(state) || 0),
  }));
  const sum = (values) => values.reduce((total, one) => total + one, 0);
  if (likely.length > named.length) {
    const rest = beliefs.map((belief) => sum([...belief.values()]) - sum(named.map((state) => belief.get(state) || 0)));
    found.push({ name: 'other states', kind: 'other', values: rest.map((one) => Math.max(0, one)) });
  }
  const over = beliefs.map((belief) => Math.max(0, 1 - sum([...belief.values()])));
  if (Math.max(...over) > 1e-9) found.push({ name: 'over', kind: 'over', values: over });
  return found;
}
