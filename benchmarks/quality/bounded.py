"""What the bounds of the search for passages cost in recall: ``python -m benchmarks.quality.bounded locomo beam crosswoz``.

Each question of a set is searched for among all pages of its conversation, by ``session.search`` and by the search that passages
are quoted from. Prints the share of the evidence's pages among the first five, for both.
"""

import sys
from pathlib import Path

from memci.archive.catalogue.page_index import PageIndex
from memci.archive.catalogue.page_search import IndexHit
from memci.archive.catalogue.search import Filter
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.messages.tokens.counter import get_counter
from memci.quality.catalogue import MemciEngine
from memci.quality.conversation import Conversation, read_set
from memci.quality.scoring.evidence import pages_by_message

FIRST = 5


def shares(conversation: Conversation) -> list[tuple[float, float]]:
    """Return, for each question, the share of its evidence's pages that the whole search finds, and that the bounded one does."""
    with Engine("memory:", {"counter": "approximate"}) as engine, engine.session("quality") as session:
        played = MemciEngine(session)
        for message, at in zip(conversation.messages, conversation.times, strict=True):
            played.add(message, at)
        page_of = pages_by_message(played.pages())
        rows = []
        for question in conversation.questions:
            wanted = {page_of[number].page for number in question.evidence if number in page_of}
            if not wanted:
                continue
            whole = {hit.index for hit in session.search(question.question, FIRST, include_visible=True)}
            bounded = {hit.index for hit in _find_passages(session, question.question)}
            rows.append((len(wanted & whole) / len(wanted), len(wanted & bounded) / len(wanted)))
        return rows


def _find_passages(session: Session, query: str) -> list[IndexHit]:
    def find(index: PageIndex) -> list[IndexHit]:
        return index.find_passages(query, limit=FIRST, characters=250, only=Filter())

    return session._run(lambda core: core.ask(find))


def main() -> None:
    """Print a line for each set."""
    for path in map(Path, sys.argv[1:]):
        rows = [row for conversation in read_set(path, get_counter("approximate")).conversations for row in shares(conversation)]
        whole, bounded = (100 * sum(column) / len(rows) for column in zip(*rows, strict=True))
        print(f"{path.name}: {len(rows)} questions, R@{FIRST} of all words {whole:.1f}, of rare words {bounded:.1f}")  # noqa: T201


if __name__ == "__main__":
    main()
