"""What stands in the window when a question comes, without any tool: ``python -m benchmarks.quality.passages``.

A conversation is played as ``memci bench quality`` does; then each of its questions is said by the user, the window is asked for,
and the session goes back to before it. Evidence is shown where its message stands in the window, word for word or as a passage.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Budget, Config, Recall
from memci.messages.tokens.counter import get_counter
from memci.quality.conversation import Conversation, content_words, full_text, read_set
from memci.quality.playing import COUNTER

SHOWN = (PageState.OPEN, PageState.ACTIVE, PageState.ATTACHED)


@attrs.frozen
class Asked:
    """What one question found.

    Attributes:
        shown: Share of its evidence that stands in the window.
        words: Share of the answer's words that do, beside the question; 0 for an answer without words.
        tokens: Size of what was quoted for it.
    """

    shown: float
    words: float
    tokens: int


def played(session: Session, conversation: Conversation) -> dict[int, str]:
    """Play a conversation, and return the address of each message."""
    addresses = {}
    for number, (value, at) in enumerate(zip(conversation.messages, conversation.times, strict=True)):
        if value.get("role") == "assistant":
            session.window()
        addresses[number] = session.append(value, at=at).address
    if conversation.messages[-1].get("role") == "user":  # else the question would be a second message of the same turn
        session.append({"role": "assistant", "content": "I see."})
    return addresses


def ask_all(session: Session, conversation: Conversation, addresses: dict[int, str]) -> Iterator[Asked]:
    """Ask each question, and take it back."""
    for question in conversation.questions:
        evidence = {addresses[number] for number in question.evidence}
        if not evidence:
            continue
        entry = session.append({"role": "user", "content": question.question})
        window = session.window()
        texts = [full_text(message) for message in window.messages[:-1]]
        quoted = {line.partition(" ")[0] for text in texts if text.startswith("[recalled") for line in text.split("\n")}
        shown = sum(address in quoted or session.facts(address.partition("/")[0]).state in SHOWN for address in evidence)
        answer = content_words(question.answer) - content_words(question.question)
        found = answer & content_words("\n".join(texts))
        yield Asked(shown / len(evidence), len(found) / max(len(answer), 1), window.breakdown["recalled"])
        session.rewind(entry.address)


def main() -> None:
    """Print the shares, by set and by number of tokens."""
    arguments = argparse.ArgumentParser(description="Ask the questions of conversations, with and without passages.")
    arguments.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    arguments.add_argument("--budget", type=int, default=8_000)
    arguments.add_argument("--tokens", default="0,auto,500", help="values of recall.passages_tokens")
    given = arguments.parse_args()
    for path in given.paths:
        conversations = read_set(path, get_counter(COUNTER)).conversations
        for given_tokens in given.tokens.split(","):
            tokens: int | Literal["auto"] = "auto" if given_tokens == "auto" else int(given_tokens)
            config = Config(budget=Budget(window=given.budget, reserve=0), recall=Recall(passages_tokens=tokens))
            asked: list[Asked] = []
            for conversation in conversations:
                with Engine("memory:", config) as engine, engine.session("asked") as session:
                    asked += ask_all(session, conversation, played(session, conversation))
            shown, words, size = (sum(getattr(each, name) for each in asked) for name in ("shown", "words", "tokens"))
            sys.stdout.write(
                f"{path.name}, window of {given.budget}, recall.passages_tokens {tokens}: {len(asked)} questions, "
                f"{shown / len(asked):.1%} of the evidence and {words / len(asked):.1%} of the answers' words in the window, "
                f"{size / len(asked):.0f} tokens quoted\n"
            )


if __name__ == "__main__":
    main()
