"""The line of components: what rules with and without inspections cost."""

from __future__ import annotations

import actmeasure as am


def main() -> None:
    """Print the exact values of rules for lines of one and two components."""
    methods = ("never", "always", "every-3", "atm")
    print("components  states  decisions  " + "  ".join(f"{method:>7}" for method in methods) + "  levels for free")
    for n in (1, 2):
        model = am.problems.component_line(n)
        found = [am.solve(model, method).value for method in methods]
        free = float(am.q_mdp(model).max(axis=1)[model.initial_states[0]])
        decisions = int(model.allowed_decisions.sum())
        print(
            f"{n:10}  {model.n_states:6}  {decisions:9}  " + "  ".join(f"{v:7.4f}" for v in [*found, free]), flush=True
        )


if __name__ == "__main__":
    main()
