"""A set of conversations said several times, by people of other names and in other years: ``python -m benchmarks.quality.again``.

Histories of half a million tokens are made of real conversations that are shorter:

python -m benchmarks.quality.again 6 .benchmarks/again memorybank locomo
memci bench quality .benchmarks/again --join 1000 --budget 32000

Names of those who speak, and years, are replaced in messages, questions and answers alike; no message is there twice.
"""

import argparse
import itertools
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from memci.quality.conversation import read_document
from memci.quality.timestamp import iso_time

_ONSETS = ("Ba", "De", "Fi", "Go", "Ka", "Li", "Mo", "Na", "Pe", "Ro", "Su", "Ta", "Vi", "Zo", "Chi", "Sho")
_ENDS = ("bin", "dra", "lan", "mir", "nea", "ric", "ssa", "ton", "via", "wen", "rok", "gail")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SHORT_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")


def said_again(document: dict[str, Any], person: str, names: Iterator[str], years: int, known: set[str]) -> dict[str, Any]:
    """Return a conversation under other names and so many years later; *known* are the messages there are.

    *person* is the name of the user where the messages name nobody.
    """
    messages = [_named(message, person) for message in document["messages"]]
    questions = document.get("questions", [])
    new = {name: next(names) for name in dict.fromkeys(message["name"] for message in messages)}
    shown = json.dumps([messages, questions], ensure_ascii=False)
    new |= {short: new[name] for short in _SHORT_NAME.findall(shown) for name in [*new] if name.startswith(short)}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(new, key=len, reverse=True)))})\b")

    def changed(value: Any) -> Any:  # noqa: ANN401 (any JSON)
        if isinstance(value, str):
            return _YEAR.sub(lambda year: str(int(year[0]) + years), pattern.sub(lambda name: new[name[0]], value))
        if isinstance(value, dict):
            return {key: changed(item) for key, item in value.items()}
        return [changed(item) for item in value] if isinstance(value, list) else value

    times = [_later(at, years) for at in document.get("timestamps", [None] * len(messages))]
    return {
        **document,
        "messages": [_unlike(changed(message), at, known) for message, at in zip(messages, times, strict=True)],
        "timestamps": times,
        "questions": changed(questions),
    }


def _named(message: dict[str, Any], person: str) -> dict[str, Any]:
    return {"name": person if message["role"] == "user" else f"assistant-of-{person}", **message}


def _later(at: object, years: int) -> str | None:
    time = iso_time(at)
    if time is None:
        return None
    return f"{int(time[:4]) + years}{time[4:]}".replace("-02-29", "-02-28")


def _unlike(message: dict[str, Any], at: str | None, known: set[str]) -> dict[str, Any]:
    """Return a message that is none of those known: a repeated one tells its day, and how often it was said."""
    day = "" if at is None else f" ({datetime.fromisoformat(at):%d.%m.%Y})"
    for number in itertools.count():
        more = "" if not number else day if number == 1 else f"{day} {number}"
        told = {**message, "content": f"{message['content']}{more}"}
        if (text := json.dumps(told)) not in known:
            known.add(text)
            return told
    raise AssertionError


def main() -> None:
    """Write the set."""
    arguments = argparse.ArgumentParser(description="Say conversations several times, under other names and in other years.")
    arguments.add_argument("times", type=int)
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="sets: directories of .json files")
    given = arguments.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    names = (onset + middle + end for middle in ("", "ra", "li", "no") for end in _ENDS for onset in _ONSETS)
    known: set[str] = set()
    files = [file for path in given.paths for file in sorted(path.glob("*.json"))]
    for time, (number, file) in itertools.product(range(given.times), enumerate(files)):
        document = read_document(file)
        person = file.stem.split("-")[-1].split()[0]
        again = said_again(document, person, names, time, known)
        target = given.directory / f"{time}-{number:03}-{file.stem.replace(' ', '')}.json"
        target.write_text(json.dumps(again, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
