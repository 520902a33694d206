"""An engine on a bucket: a conversation that folds, recalls and is opened again elsewhere."""

from pathlib import Path

import pytest

import memci
from tests.archive.stores.objects.s3_server import S3Server

pytestmark = pytest.mark.server

TURNS = 40
CONFIG = {"budget": {"window": 1_500, "reserve": 100}, "snapshot_every": 50}


def say(session: memci.Session, turn: int) -> None:
    session.append({"role": "user", "content": f"question {turn} about invoice {turn * 7} " + "and more words " * 20})
    session.append({"role": "assistant", "content": f"answer {turn}: it was paid on day {turn} " + "with other words " * 20})


@pytest.mark.slow
def test_a_conversation_goes_on_from_another_machine(s3: S3Server, tmp_path: Path) -> None:
    """Folded pages are recalled, the window is the same for whoever opens the session next, and everything verifies."""
    bucket = s3.new_bucket()
    with memci.Engine(s3.url(bucket, options=f"&memci_index={tmp_path}/one"), config=CONFIG) as engine:
        session = engine.session("support")
        for turn in range(TURNS):
            say(session, turn)
        window = session.window()
        assert len(window.messages) < 2 * TURNS
        assert {"archived", "hidden"} & {page.state for page in session.pages()}
    with memci.Engine(s3.url(bucket, options=f"&memci_index={tmp_path}/two"), config=CONFIG) as engine:
        assert ["support"] == list(engine.sessions())
        session = engine.session("support")
        assert window.messages == session.window().messages
        assert "question 3 " in str(session.recall("usr-4").messages)
        assert [f"question {turn} about" for turn in range(TURNS)] == [
            " ".join(str(session.page(page.index).messages[0]["content"]).split()[:3]) for page in session.pages()
        ]
        assert session.verify().ok
        engine.delete("support")
        assert [] == list(engine.sessions())
