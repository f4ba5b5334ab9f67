"""What a fit itself has to say about the plan that rests on it."""

from __future__ import annotations

from collections.abc import Iterator

from actmeasure.errors import shown
from actmeasure.fitting import Economics, Fit

__all__ = ["fit_notes"]


def fit_notes(fit: Fit, economics: Economics) -> Iterator[str]:
    """Sentences: what does not fit, what the records cannot tell, what was assumed, and what the plan takes for granted."""
    if fit.goodness is not None and fit.goodness.findings:
        yield f"The model does not fit the records in all respects, so mind the plan: {shown(fit.goodness.findings[0])}"
        yield from map(shown, fit.goodness.findings[1:])
    yield from map(shown, (*fit.warnings, *fit.identifiability, *fit.notes))
    for state in economics.failure_states:
        if state not in economics.terminal and not economics.running.get(state):
            yield (
                f"By the prices a unit that stays in {state!r} costs nothing after it has failed; if it does, give that a price "
                "under [running]."
            )
    for state in fit.noticed:
        if state not in economics.terminal:
            yield (
                f"State {state!r} is noticed at once in the records, but the plan assumes that nobody notices it before the "
                "next inspection; what is done when it is noticed is not in the figures."
            )
