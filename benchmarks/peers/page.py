"""docs/benchmarks.md and its picture: ``python -m benchmarks.peers.page benchmarks/peers/result.json``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers.work import KINDS
from benchmarks.result import markdown
from memci.quality.reports import peers

PAGE = Path("docs/benchmarks.md")

_HEAD = """# Beside other libraries

memci counts each message exactly, summarises and indexes each page that leaves the window, and keeps every message where it is
found and recalled. None of the others does all of that, and what they spare by that, they are better in: each of their figures
below 0.95 of that of the memci that keeps messages as safe, as shares of memci's, over all works and variants.

"""

_METHOD = """## How it is measured

```sh
make bench-peers                                              # writes .benchmarks/peers.json, and prints all tables
python -m benchmarks.peers.page benchmarks/peers/result.json  # writes this page, from the run that is kept with the project
memci bench peers benchmarks/peers/result.json                # prints all tables of that run, shorter chats included
```

* Each library is installed in an environment of its own, in the versions of `benchmarks/peers/pins`, and runs in a process of
  its own, driven by the file of its name in `benchmarks/peers/drivers`. All environments together take 3 GB, of which OpenLCM's
  takes 1.8; `PEERS="agents strands"` installs some. Their rounds alternate, A B C, B C A, so that what else the machine does
  meets all of them alike. {run}
* A history is filled as an import does; then come {checked_turns} turns, or {check_s:.0f} seconds of them, whose windows are
  looked at, and {rounds} rounds of at most {round_turns} turns or {round_s:.0f} seconds of CPU time, which are timed. A turn
  is: append the user's message, window, append the assistant's message, with a window before each message of the assistant.
  What a library takes is made of the messages beforehand, untimed. The window is {window:,} tokens of `o200k_base`; libraries
  that count messages keep the newest {messages} of them, which is as much in chat. A library that has not reached a length
  after {fill_s:.0f} seconds of CPU time is left out there, and named.
* **with pauses**: the same in {rounds} rounds of {pause_turns} turns of chat, in which each window is followed by {pause_ms:.0f}
  ms of sleep, as a model takes its time. No wait holds the sleep; what threads do meanwhile is in *all CPU*, and so is what they
  still have to do after the last turn. Back to back, what is left to threads competes with the next turn.
* **sqlite3** is the least that a backend can do and keep every message: role and content in columns, which is cheaper than JSON,
  and JSON only where a message has other keys. Its tokens were counted before; it has a row for each message, and its full-text
  index one for each turn.
* **turn CPU** is the median of the calling thread's CPU time: what is done by other threads, as by the one in which the
  OpenAI Agents SDK calls SQLite, is not in it. **all CPU** is that of the process, workers and closing included, divided by
  the turns; **wait** is elapsed time, and its mean holds memci's folds. **growth** is *turn CPU* over that at a tenth of the
  history.
* Ratios are memci's figure over the other one's, at the longest chat; of turn CPU and mean wait the median of paired rounds.
  *Wait at a fold* is the longest wait of a round that holds one, the median of four rounds. The share of the search index in the
  bytes is that of the calls of `write`, seen by strace.
* Files are on {disk}; a disk adds its time for each sync. **bytes** are what the process gives to the system to write
  (`wchar`), closing included; what SQLite writes to the shared memory of its log is not in it. **syncs** are calls of
  `fsync`, `fdatasync` and the like, seen by strace, between the first turns and closing.
* Of the other operations the CPU time of the process is told: elapsed time says more of the other programs than of them.
  **import** is a turn of filling the history, by 1,000
  messages at once. **reopen** is closing, opening and a window, all in one
  process. **first request** is the CPU time of a new process until its first window, the start of Python included.
  **reading** is one of the first 50 turns, compared with what was said; **search** is a question with two common words and a
  rare name.
* **over budget** and **broken pairs** (a call without its result directly after it, a result without its call) are counted
  anew in these windows, by memci's counter.
* **lost by kill -9**: of some 200 messages that a process had taken in when it was killed, those that the next one does not
  find. It is no loss of power: what was only given to the system is still there. **lost by four writers**: of the messages
  that four processes had taken in in one conversation at once, up to 50 each, without an error. **all**: what is kept in
  memory only.

What the figures of each hold:

"""


def page(result: dict[str, Any]) -> Iterator[str]:
    """Yield the page, in pieces."""
    rows, machine, plan = peers.rows_of(result), result["machine"], result["plan"]
    yield _HEAD
    yield from markdown(["library", "better in"], peers.better(result, rows))
    yield "\n![how long a turn takes as the history grows, by library](benchmarks.svg)\n\n## Ratios\n\n"
    yield from markdown(peers.RATIO_COLUMNS, peers.ratios(result))
    longest = f"chat, {result['lengths'][-1]:,} turns"
    for heading, part in peers.parts_of(rows):
        if heading != longest and part[0]["work"] == "chat":
            continue  # the shorter ones are in the picture
        yield f"\n## {heading.capitalize()}\n\nA turn is {KINDS[part[0]['work']]}.\n"
        for of, measures in peers.TABLES.items():
            if (heading == longest or measures is peers.TURNS) and (lines := peers.table(measures, part)):
                yield f"\n{of[0].upper()}{of[1:]}:\n\n"
                yield from markdown(lines[0], lines[1:])
    yield "\n## Promises, over all works\n\n"
    promises = peers.table(peers.ONCE, peers.once_of(result))
    yield from markdown(promises[0], promises[1:])
    if missing := list(peers.problems(rows)):
        yield "\n## Not reached\n\n" + "".join(f"* {words}\n" for words in missing)
    run = (
        f"This run took {result['seconds'] / 60:.0f} minutes on {machine['day']}: {machine['cpu']}, {machine['cores']} cores, "
        f"a load of {machine['load']:.0f} by other programs when it began, Python {machine['python']}, "
        f"SQLite {machine['sqlite']}."
    )
    disk = "a memory disk" if machine["memory_disk"] else "a disk"
    pause_ms = 1e3 * plan["pause_s"]
    yield "\n" + _METHOD.format(
        **plan, run=run, pause_ms=pause_ms, window=result["window"], messages=result["messages"], disk=disk
    )
    versions = {row["peer"]: ", ".join(f"{name} {version}" for name, version in row.get("versions", {}).items()) for row in rows}
    spoken = ((name, versions[name] or "-", said["beside"], said["note"]) for name, said in result["peers"].items())
    yield from markdown(["peer", "versions", "compared with", "what it keeps and does"], spoken)


def main(file: str) -> None:
    """Write page and picture."""
    result = json.loads(Path(file).read_text(encoding="utf-8"))
    PAGE.write_text("".join(page(result)), encoding="utf-8")
    PAGE.with_suffix(".svg").write_text(peers.draw(peers.rows_of(result)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
