"""Three agents with one global context, killed at any moment: ``python -m tests.torture.agents``, ``--store sqlite`` and others.

Each agent is a process with a session of its own, in which the project's session is mounted. It answers, writes what it found
into the project, recalls pages of it, promotes pages of its own, and hands over to the next agent, and goes on where it was when
it is begun again. At the end each message, note, promotion and handoff is there once, all windows fitted, and each word that an
agent has from another one is traced to it by ``explain``.
"""

import argparse
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator

from memci.archive.catalogue.page_facts import PageFacts
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import PageNotFoundError
from tests.torture.users import SIZES, Value, opened, settings

AGENTS = 3
MOST = 1_500  # tokens of a window, as the settings say
WORDS = " of the ledger that nobody reads" * 6
_WORD = re.compile(r"canary-(\d)-\d+")
_SOURCE = re.compile(r"what session 'agent (\d)' held as of its event \d+")


def name(agent: int) -> str:
    return f"agent {agent % AGENTS}"


def asked(agent: int, step: int) -> Value:
    return {"role": "user", "content": f"task {step} for canary-{agent}-{step}{WORDS}"}


def answered(agent: int, step: int) -> Value:
    return {"role": "assistant", "content": f"done {step} by canary-{agent}-{step}{WORDS}"}


def found(agent: int, step: int) -> str:
    return f"Found {step} by agent {agent}"


def hands_over(agent: int, step: int) -> bool:
    return (agent + step) % 5 == 0


def work(url: str, agent: int, steps: int) -> None:
    """Be an agent, from where it was."""
    with Engine(url, settings(url), on_conflict="retry") as engine, engine.session(name(agent)) as session:
        if "project" not in session.mounts():
            session.mount("project", segment="project", permission="read_write", capacity_tokens=200)
        for step in range(int(session.slots.get("step") or 0), steps):
            take(engine, session, agent, step)
            session.slots["step"] = str(step + 1)


def take(engine: Engine, session: Session, agent: int, step: int) -> None:
    """Take a step, or what is left of it to do."""
    session.append(asked(agent, step), key=f"asked {step}")
    fitting(session)
    entry = session.append(answered(agent, step), key=f"answered {step}")
    fitting(session)
    with engine.session("project") as project:
        written = [note.title for note in project.notes()]
    if step % 2 == 0 and found(agent, step) not in written:
        session.create_detail_page(found(agent, step), "", f"canary-{agent}-{step} was here{WORDS}", "project/usr-0")
    if written:
        session.recall(f"project/note-{len(written)}")
    if step % 3 == 0:
        session.promote(entry.page.index)
    if hands_over(agent, step):
        session.handoff(name(agent + 1), key=f"step {step}")
    fitting(session)


def fitting(session: Session) -> None:
    """Make a window, which has room."""
    tokens = session.window().tokens
    assert tokens <= MOST, f"a window of {tokens} tokens"


def problems_of(engine: Engine, steps: int) -> Iterator[str]:
    """Yield what is not as it should be once all agents are done."""
    every = range(AGENTS)
    promoted, wrote = AGENTS * len(range(0, steps, 3)), AGENTS * len(range(0, steps, 2))
    for agent in every:
        with engine.session(name(agent)) as session:
            said = [each for step in range(steps) for each in (asked(agent, step), answered(agent, step))]
            if list(session.messages()) != said:
                yield f"{name(agent)} has other messages"
            handed = [step for step in range(steps) if hands_over(agent, step)]
            told = [(each.data["session"], each.data["page"]) for each in session.events("handed_over")]
            if len(told) != len(handed) or len({*told}) != len(told) or any(to != name(agent + 1) for to, _ in told):
                yield f"{name(agent)} handed over {handed}, and its journal has {told}"
            got = sum(hands_over(agent - 1 if agent else AGENTS - 1, step) for step in range(steps))
            yield from notes_amiss(session, got)
            yield from strangers(session)
            fitting(session)
    for held, wanted in (("project", wrote), ("memory", promoted)):
        with engine.session(held) as session:
            yield from notes_amiss(session, wanted)
    for session_id in engine.sessions():
        with engine.session(session_id) as session:
            yield from (f"{session_id}: {problem}" for problem in session.verify().problems)


def notes_amiss(session: Session, wanted: int) -> Iterator[str]:
    notes = session.notes()
    if len(notes) != wanted:
        yield f"{session.id} has {len(notes)} notes, not {wanted}: {[note.title for note in notes]}"
    for note in notes:
        yield from untraced(session, note.index, str(session.page(note.index).messages))


def untraced(session: Session, index: str, text: str) -> Iterator[str]:
    """Yield the words of a page that ``explain`` does not trace to whose they are."""
    if strange := {*_WORD.findall(text)} - {*_SOURCE.findall(str(session.explain(index)))}:
        yield f"{session.id}: {index} has words of agents {strange}, and is explained as {session.explain(index)}"


def strangers(session: Session) -> Iterator[str]:
    """Yield what an agent has of others and that is not traced: its own pages, and those of the project that it shows."""
    own = session.id.rpartition(" ")[2]
    for facts in all_pages(session):
        if {*_WORD.findall(str(session.page(facts.index).messages))} - {own}:
            yield f"{session.id}: {facts.index} has words of others"
    shown = re.findall(r"^\[(project/note-\d+)\]", session.mounts()["project"].text, re.MULTILINE)
    for index in shown:
        try:
            yield from untraced(session, index, str(session.page(index).messages))
        except PageNotFoundError as error:
            yield f"{session.id} shows {index}: {error}"


def all_pages(session: Session) -> list[PageFacts]:
    return [facts for facts in session.pages() if facts.index.startswith("usr-") and not facts.index.endswith("-0")]


def run(store: str, steps: int, every_s: float, seed: int) -> int:
    """Let the agents work while they are killed, look at what there is then, print the figures, and return the exit code."""
    chance, kills, problems = random.Random(seed), 0, list[str]()  # noqa: S311 (chance, not secrets)
    with opened(store) as (url, _):
        with Engine(url, settings(url)) as engine, engine.session("project") as project:
            project.append({"role": "user", "content": "Bring the ledger in order."})

        def begin(agent: int) -> "subprocess.Popen[str]":
            options = ["--work", url, "--agent", str(agent), "--steps", str(steps)]
            command = [sys.executable, "-m", "tests.torture.agents", *options]
            return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 (fixed words)

        began = time.monotonic()
        at_work = {agent: begin(agent) for agent in range(AGENTS)}
        while at_work:
            time.sleep(every_s * chance.random() * 2 if every_s else 0.05)
            for agent, process in list(at_work.items()):
                if process.poll() is not None:
                    told = process.communicate()[1]
                    if process.returncode:
                        problems.append(f"{name(agent)} ended with {process.returncode}: {told[-500:]}")
                    del at_work[agent]
            agent = chance.randrange(AGENTS)
            if every_s and agent in at_work:
                at_work[agent].kill()
                if at_work[agent].wait() < 0:  # it was at work
                    at_work[agent].communicate()
                    at_work[agent] = begin(agent)
                    kills += 1
        took = time.monotonic() - began
        with Engine(url, settings(url)) as engine:
            problems += problems_of(engine, steps)
            handed = sum(1 for agent in range(AGENTS) for step in range(steps) if hands_over(agent, step))
    sys.stdout.write("".join(f"  {problem}\n" for problem in problems[:10]))
    sys.stdout.write(
        f"agents, {store}: {AGENTS} agents of {steps} steps, {kills} kills, {handed} handoffs, {took:.0f} s: "
        f"{len(problems)} problems\n"
    )
    return int(bool(problems))


def main() -> int:
    """Read the arguments, and be an agent or the whole."""
    arguments = argparse.ArgumentParser(description="Let three agents work on one thing, and kill them.")
    arguments.add_argument("--store", choices=(*SIZES, "all"), default="sqlite")
    arguments.add_argument("--steps", type=int, default=60, help="of each agent")
    arguments.add_argument("--kill-every", type=float, default=1.5, help="seconds between two kills; 0 for none")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--work", help="be an agent on the store of this URL")
    arguments.add_argument("--agent", type=int, default=0)
    given = arguments.parse_args()
    if given.work:
        work(given.work, given.agent, given.steps)
        return 0
    stores = [*SIZES] if given.store == "all" else [given.store]
    return max(run(store, given.steps, given.kill_every, given.seed) for store in stores)


if __name__ == "__main__":
    sys.exit(main())
