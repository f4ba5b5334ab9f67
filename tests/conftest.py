"""One hypothesis profile for all tests: the same cases every time, and no deadline on a noisy machine. And one browser."""

from browser import chromium  # noqa: F401
from hypothesis import HealthCheck, settings

settings.register_profile(
    "actmeasure", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("actmeasure")
