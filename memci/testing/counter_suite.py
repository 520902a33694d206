"""What every counter of tokens has to do, as tests.

To test one, inherit and say how it is made::

    class TestMyCounter(CounterSuite):
        @pytest.fixture
        def counter(self):
            return MyCounter()
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memci.messages.tokens.counter import TokenCounter

TEXTS = ("", "a", "Hello, world.", "我想找一家酒店", "x" * 100_000, "\ud800", "<|endoftext|>", "\0\n\t " * 50, "😀" * 20)


LINES = ("[usr-0] Contents of earlier pages, oldest first.", "[usr-1] Hello · 2 entries", "[usr-2..9] 8 pages\n3 invoices", "[x")


class CounterSuite:
    """Tests of one counter, which the fixture ``counter`` makes."""

    def test_it_says_what_it_is(self, counter: TokenCounter) -> None:
        """It has a name, tells whether it is exact, and a margin that never makes counts less."""
        assert counter.name.strip()
        assert isinstance(counter.exact, bool)
        assert counter.margin >= 1.0

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_it_counts_any_text(self, counter: TokenCounter, text: str) -> None:
        """The same text gives the same whole number, from several threads too; the empty one none."""
        count = counter.count(text)
        assert type(count) is int
        assert count >= 0
        assert bool(text) or not count
        with ThreadPoolExecutor(4) as threads:
            assert [count] * 8 == list(threads.map(counter.count, [text] * 8))

    def test_lines_of_a_contents_page_add_up(self, counter: TokenCounter) -> None:
        """Where it is exact, the whole has as many tokens as its lines that begin with a bracket, each with its line break."""
        parts = [counter.count(f"{line}\n") for line in LINES[:-1]]
        assert not counter.exact or counter.count("\n".join(LINES)) == sum(parts) + counter.count(LINES[-1])
