"""What contents pages show where a summariser writes the very sentences that answer the questions: how much they can carry.

python -m benchmarks.quality.perfect DIRECTORY [--budget 8000]
"""

import argparse
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from memci.engine.engine import Engine
from memci.engine.settings.config import Budget, Config
from memci.messages import codec
from memci.messages.message import Message
from memci.messages.tokens.counter import get_counter
from memci.quality.catalogue import MemciEngine
from memci.quality.conversation import Conversation, content_words, full_text, read_set
from memci.quality.played import Evidence
from memci.quality.playing import COUNTER
from memci.quality.scoring.evidence import EvidenceTurns, find_evidence

_PATIENCE_S = 60.0
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")


class Perfect:
    """Writes of each page the sentences in which answers stand."""

    name = "perfect"

    def __init__(self, conversation: Conversation) -> None:
        turns = EvidenceTurns(conversation)
        self._said: dict[bytes, dict[str, None]] = {}
        for question in conversation.questions:
            wanted = turns.held(question)
            for value in map(conversation.messages.__getitem__, turns.numbers(question.evidence)):
                for sentence in _SENTENCE_END.split(full_text(value)):
                    if content_words(sentence) & wanted:
                        self._said.setdefault(codec.encode(value), {})[sentence] = None

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:  # noqa: ARG002 (as the protocol has it)
        """Return the sentences; none where no answer stands in the page, which keeps its extracts then."""
        return " ".join(sentence for message in messages for sentence in self._said.get(message.raw, ()))


def play(conversation: Conversation, budget: int, *, perfect: bool) -> Evidence:
    """Return what the last window shows of the answers; summaries have come before each answer of the assistant."""
    settings = Config(budget=Budget(window=budget, reserve=0))
    summarizer = Perfect(conversation) if perfect else None
    with Engine("memory:", settings, summarizer=summarizer) as engine, engine.session("conversation") as session:
        played = MemciEngine(session)
        for value, at in zip(conversation.messages, conversation.times, strict=True):
            played.add(value, at)
            if value["role"] == "assistant":
                session.summarize(_PATIENCE_S)
        return find_evidence(conversation, played.window(), played.pages())


def main() -> None:
    """Print the share of the answers that stand where their page is shown, with extracts and with such summaries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--budget", type=int, default=8_000)
    given = parser.parse_args()
    conversations = read_set(given.directory, get_counter(COUNTER), 1).conversations
    with ProcessPoolExecutor(2) as processes:
        for perfect in (False, True):
            total = Evidence()
            for found in processes.map(_played, conversations, repeat(given.budget), repeat(perfect)):
                total += found
            print("summaries" if perfect else "extracts", f"at page {100 * total.at_page / total.questions:.1f}")  # noqa: T201


def _played(conversation: Conversation, budget: int, perfect: bool) -> Evidence:  # noqa: FBT001 (mapped over)
    return play(conversation, budget, perfect=perfect)


if __name__ == "__main__":
    main()
