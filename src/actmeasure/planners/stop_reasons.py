"""Why a search ended before its bounds were as close as asked for, and what to do about it."""

from __future__ import annotations

from actmeasure.planners.clock import Stopped

__all__ = ["why_open"]


def why_open(stopped: Stopped, discount: float, gain: str = "close the gap") -> str:
    """A sentence for a reason to stop, where `gain` is what more time may do; empty where there was nothing more to do."""
    match stopped:
        case "time":
            return f"The time limit was reached: more time may {gain}."
        case "interrupted":
            return f"Stopped with Ctrl-C: more time may {gain}."
        case "memory":
            return "The search's memory limit was reached: a larger tolerance, or a smaller discount, needs less."
        case "exhausted" if discount == 1:
            return (
                "Without discount the search found nothing more to improve: a discount slightly below 1 closes the gap "
                "further."
            )
        case "exhausted":
            return "The search found nothing more to improve: it is as close as rounding allows, so ask for a larger tolerance."
        case "closed" | "done":
            return ""
