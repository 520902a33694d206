"""Hypothesis profiles, and what holds for all tests.

``ci``, the default, tries the same examples in every run. ``seeded`` does too, and doesn't shrink failures: for known bugs.
``explore`` tries ten times as many examples, new ones in each run; ``tests.torture.exploring`` uses it. The variable
``HYPOTHESIS_PROFILE`` chooses one.
"""

import os
import signal

from hypothesis import HealthCheck, Phase, settings

from memci.engine.core.worker import Worker

pytest_plugins = ["memci.testing.conformance", "tests.costs"]

settings.register_profile(
    "ci",
    max_examples=50,
    stateful_step_count=30,
    deadline=None,  # the cores may be shared with other work
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    database=None,
    print_blob=True,
)
settings.register_profile("seeded", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.register_profile("explore", settings.get_profile("ci"), max_examples=500, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell starts its background jobs, and nohup, with interrupts ignored, which processes that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What engines do ahead of commands is done where a test waits for it, and not whenever the machine was slow for a moment.
Worker.grace_s = 1.0
Worker.idle_s = 0.1
