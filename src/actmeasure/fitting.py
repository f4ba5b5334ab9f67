"""The former name of a part of `actmeasure.inspection`, kept for existing code."""

from actmeasure.inspection import Economics, Fit, fit

__all__ = ["Economics", "Fit", "fit"]
