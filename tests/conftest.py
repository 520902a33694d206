"""Hypothesis profiles: ``ci`` repeats itself, ``dev`` is quick, ``thorough`` is for a long look.

``seeded`` is ``ci`` for bugs that are known, where no failure is made smaller.
``explore`` tries ten times as many examples as ``dev``, other ones each time; ``tests.torture.exploring`` runs it.
``HYPOTHESIS_PROFILE`` chooses one; without it, ``ci`` where the variable ``CI`` is set and ``dev`` elsewhere.
"""

import os
import signal

from hypothesis import HealthCheck, Phase, settings

from memci.engine.core.worker import Worker

pytest_plugins = ["memci.testing.conformance", "tests.costs"]

# Two cores are shared with other runs, so that no example may be judged by the clock.
settings.register_profile(
    "dev", max_examples=50, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=5_000, stateful_step_count=100)
settings.register_profile("seeded", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.register_profile(
    "explore", settings.get_profile("dev"), max_examples=500, derandomize=False, database=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# A shell starts its background jobs, and nohup, with interrupts ignored, which processes that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What engines do ahead of commands is done where a test waits for it, and not whenever the machine was slow for a moment.
Worker.grace_s = 1.0
Worker.idle_s = 0.1
