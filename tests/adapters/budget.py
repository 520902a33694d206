"""The window that adapters have to stay in, and how the tests count what a framework sends."""

from memci.messages.tokens.counter import get_counter

WINDOW = 4_000
COUNT = get_counter("o200k_base").count
