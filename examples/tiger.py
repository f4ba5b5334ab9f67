"""The tiger problem: listen until one side was heard more often than the other by a given number, then open the other door."""

from __future__ import annotations

import actmeasure as am

LISTEN, OPEN_LEFT, OPEN_RIGHT = 0, 1, 2


def by_lead(lead: int) -> am.PolicyGraph:
    """Return the controller that opens the door away from a side that was heard `lead` times more often; node 0 is the start."""
    leads = [0, *(sign * k for k in range(1, lead + 1) for sign in (1, -1))]  # positive: left was heard more often
    node = {difference: number for number, difference in enumerate(leads)}
    decisions: list[am.Decision] = []
    edges: list[dict[int | str | None, int]] = []
    for difference in leads:
        opens = abs(difference) == lead
        decisions.append(am.Decision((OPEN_RIGHT if difference > 0 else OPEN_LEFT) if opens else LISTEN))
        edges.append({None: 0} if opens else {0: node[difference + 1], 1: node[difference - 1]})
    return am.PolicyGraph(decisions, edges=edges)


def main() -> None:
    """Print the exact value of each rule, and of act-then-measure."""
    model = am.problems.tiger()
    print("opens at a lead of   nodes     value")
    for lead in (1, 2, 3, 4):
        graph = by_lead(lead)
        print(f"{lead:<20} {len(graph.decisions):5}   {am.evaluate(model, graph).discounted_return:7.3f}")
    solution = am.solve(model, "atm")
    print(f"\nact-then-measure: {solution.value:.4f}; the optimum is between 19.3711 and 19.3721")


if __name__ == "__main__":
    main()
