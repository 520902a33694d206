"""A real small model sums up the pages of a conversation, over HTTP; a process that is killed while it does loses nothing."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memci.archive.summarizers.external.checking import problem
from memci.archive.summarizers.external.transcript import transcript
from memci.archive.summarizers.summary import Summary
from memci.chat import Endpoint
from memci.engine.engine import Engine
from memci.messages.tokens.counter import get_counter
from tests.chat.small_model import ROOT, Gate, small_model
from tests.chat.summarised_talker import EVERY, turn
from tests.engine.sessions import config_of

pytestmark = [pytest.mark.slow, pytest.mark.server]

TURNS, FIRST = 70, 40
BEFORE = 3  # summaries that come before the process is killed
ROOM = 96  # the most tokens that a summary is given

CONFIG: dict[str, Any] = {"budget": {"window": 1_000, "reserve": 0}, "durability": "flush", "summary": {"timeout_s": 100}}
OPTIONS = {"max_tokens": 24, "temperature": 0, "seed": 1}


@pytest.fixture(scope="module")
def model() -> Iterator[Gate]:
    with small_model() as gate:
        yield gate


class Talker:
    """The process that holds the conversation."""

    def __init__(self, store: str, config: dict[str, Any], days: int) -> None:
        command = [sys.executable, "-m", "tests.chat.summarised_talker", store, json.dumps(config), str(days)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)  # noqa: S603 (fixed words)

    def take(self, number: int) -> None:
        """Have a turn taken."""
        assert str(number) == self.told(str(number)).strip()

    def told(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@pytest.mark.timeout(400)
def test_a_conversation_is_summed_up_by_a_model(model: Gate, tmp_path: Path) -> None:
    """Killed meanwhile and reopened, it is whole, its thread asks nobody, and each summary is checked, or has its reason."""
    store = f"file:{tmp_path}/sessions"
    config = {**CONFIG, "summarizer": {"model": "smollm2", "base_url": model.url, "options": OPTIONS}}
    model.hold(BEFORE)
    first = Talker(store, config, days=0)
    for number in range(1, FIRST + 1):
        first.take(number)
    with model.changed:
        assert model.changed.wait_for(lambda: model.begun > model.answered == BEFORE, 120)
    first.process.kill()
    first.process.communicate()
    model.hold(10**9)
    second = Talker(store, config, days=1)
    for number in range(FIRST + 1, TURNS + 1):
        second.take(number)
    assert {} == json.loads(second.told("end"))
    second.process.communicate()
    assert 0 == second.process.returncode

    with Engine(store, CONFIG) as engine, engine.session("chat") as session:
        said = [text for number in range(1, TURNS + 1) for text in turn(number)]
        assert said == [message["content"] for message in session.messages()]
        assert [f"usr-{number}" for number in range(1, TURNS + 1)] == [facts.index for facts in session.pages()]
        assert () == session.verify().problems
        found = [event.data for event in session.events("summary_prepared")]
        assert {1} == set(Counter((data["page"], data["sha256"]) for data in found).values())
        assert {"smollm2 (prompt 1)"} == {data["by"] for data in found}
        assert {data["page"] for data in found} <= {f"usr-{number}" for number in range(EVERY, TURNS + 1, EVERY)}
        assert len(found) > 2 * BEFORE
        assert [data for data in found if not data["reason"]]
        count = get_counter("o200k_base").count
        for data in found:
            if data["reason"]:
                assert not data["title"]
                continue
            page = session.page(data["page"])
            texts = [text for _, text in transcript([node.message for node in page.nodes()])]
            summary = Summary(title=data["title"], summary=data["summary"], lines=tuple(data["lines"]), outcome=data["outcome"])
            assert "" == problem(summary, texts, page_tokens=page.tokens, max_tokens=ROOM, count=count)
            assert data["usage"]["prompt_tokens"] > data["usage"]["completion_tokens"] > 0


@pytest.mark.timeout(400)
def test_the_model_has_the_last_window_in_its_cache(model: Gate) -> None:
    """Of a request that extends the last window, it reads anew hardly more than what is asked after that."""
    setting = {"model": "smollm2", "base_url": model.url, "request": "window", "options": {"max_tokens": 32, "temperature": 0}}
    config = config_of(summarizer=setting, active={"min_pages": 2, "max_pages": 4}, summary={"timeout_s": 200})
    with Engine("memory:", config) as engine, engine.session("chat") as session:
        for number in range(EVERY, 4 * EVERY, EVERY):
            question, answer = turn(number)
            session.extend([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])
        session.append({"role": "user", "content": turn(1)[0]})
        with Endpoint(model.url, "smollm2", timeout_s=200, options={"max_tokens": 4, "temperature": 0}) as endpoint:
            reply = endpoint.complete(session.window().messages, (), may_call=False)
        session.append({"role": "assistant", "content": "It is on its way."})
        session.append({"role": "user", "content": "Thank you."})
        begun = model.begun
        session.summarize(200)
        assert model.begun > begun
        usages = [event.data["usage"] for event in session.events("summary_prepared")]
        assert 3 == len(usages)
        assert sum(usage["cached_tokens"] for usage in usages) >= 0.9 * reply.usage["prompt_tokens"]
