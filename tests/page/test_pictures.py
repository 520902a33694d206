"""The pictures of the page in the documents."""

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import memci
from memci.page.document import document
from tests.page.conftest import Look
from tests.page.pictures import DOCS, HIGH, PICTURES, WIDE, picture_session

if TYPE_CHECKING:
    from memci.engine.session import Session

pytestmark = pytest.mark.browser


def test_pictures_are_there_and_small() -> None:
    """Each picture is a PNG of the size that it is drawn in, of less than 300 kB."""
    for name in PICTURES:
        data = (DOCS / name).read_bytes()
        assert data.startswith(b"\x89PNG")
        assert (WIDE, HIGH) == struct.unpack(">II", data[16:24])
        assert len(data) < 300_000


def test_pictures_show_what_they_are_said_to(look: Look, tmp_path: Path) -> None:
    """The session that is drawn folded and recalled at the call that the picture shows, and has a pinned page."""
    with memci.Engine("memory:", {"budget": {"window": 2_000, "reserve": 0}}) as engine:
        session: Session = picture_session(engine)
        (tmp_path / "page.html").write_text(document(session, presets=[]), encoding="utf-8")
    seen = look(tmp_path / "page.html", PICTURES["page.png"][0])
    told = seen.page.locator("#happened").inner_text()
    assert "fold of" in told
    assert "recall of usr-1" in told
    assert "recalled" in seen.page.locator("#legend").inner_text()
    seen.turn("Pages")
    assert seen.page.locator(".row").get_by_text("pinned").count() == 1
