"""How often the evidence stands in the window when a question comes, without any tool: ``python -m benchmarks.quality.prefetch``.

A conversation is played as ``memci bench quality`` does; then each of its questions is said by the user, the window is asked for,
and the session goes back to before it. Evidence is shown where its pages stand in the window, word for word or recalled.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Budget, Config, Recall
from memci.messages.tokens.counter import get_counter
from memci.quality.conversation import Conversation, read_set
from memci.quality.playing import COUNTER

SHOWN = (PageState.OPEN, PageState.ACTIVE, PageState.ATTACHED)


@attrs.frozen
class Asked:
    """What one question found.

    Attributes:
        shown: Share of its evidence pages that stand in the window.
        tokens: Size of what was attached for it.
    """

    shown: float
    tokens: int


def played(session: Session, conversation: Conversation) -> dict[int, str]:
    """Play a conversation, and return the page of each message."""
    page_of = {}
    for number, (value, at) in enumerate(zip(conversation.messages, conversation.times, strict=True)):
        if value.get("role") == "assistant":
            session.window()
        page_of[number] = session.append(value, at=at).page.index
    if conversation.messages[-1].get("role") == "user":  # else the question would be a second message of the same turn
        session.append({"role": "assistant", "content": "I see."})
    return page_of


def ask_all(session: Session, conversation: Conversation, page_of: dict[int, str]) -> Iterator[Asked]:
    """Ask each question, and take it back."""
    for question in conversation.questions:
        evidence = {page_of[number] for number in question.evidence}
        if not evidence:
            continue
        entry = session.append({"role": "user", "content": question.question})
        window = session.window()
        shown = sum(session.facts(page).state in SHOWN for page in evidence)
        yield Asked(shown / len(evidence), window.breakdown["recalled"])
        session.rewind(entry.address)


def main() -> None:
    """Print the shares, by set and by number of tokens."""
    arguments = argparse.ArgumentParser(description="Ask the questions of conversations, with and without prefetch.")
    arguments.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    arguments.add_argument("--budget", type=int, default=8_000)
    arguments.add_argument("--tokens", default="0,500,1000,2000", help="values of recall.passages_tokens")
    given = arguments.parse_args()
    for path in given.paths:
        conversations = read_set(path, get_counter(COUNTER)).conversations
        for tokens in map(int, given.tokens.split(",")):
            config = Config(budget=Budget(window=given.budget, reserve=0), recall=Recall(passages_tokens=tokens))
            asked: list[Asked] = []
            for conversation in conversations:
                with Engine("memory:", config) as engine, engine.session("asked") as session:
                    asked += ask_all(session, conversation, played(session, conversation))
            shown, attached = sum(each.shown for each in asked), sum(each.tokens for each in asked)
            sys.stdout.write(
                f"{path.name}, window of {given.budget}, recall.passages_tokens {tokens}: {len(asked)} questions, "
                f"{shown / len(asked):.1%} of the evidence in the window, {attached / len(asked):.0f} tokens attached\n"
            )


if __name__ == "__main__":
    main()
