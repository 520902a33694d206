"""Parse mutated replies and report what they cost: ``python -m tests.attp.fuzz_document --cases 200000 --seed 1``.

Each case is a reply, or a hostile text, changed at random. Whatever it is, it has to become a reply or an ``AttpError``, and
may cost at most 20 times the CPU time of an ordinary reply of its size. A case that breaks a rule is printed, and the exit code
is 1.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import attrs

from memci.attp.document import parse
from memci.errors import AttpError
from tests.attp.replies import BROKEN, HOSTILE, WRAPPED, ordinary

MAX_RATIO = 20
MAX_SIZE = 32_768
_MIN_SIZE = 256
_FRAGMENTS = (
    *(
        "'''",
        '"""',
        "'",
        '"',
        "\\",
        "\\u",
        "\\\\",
        "#",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ".",
        ",",
        " ",
        "```",
        "```toml\n",
        "~~~",
    ),
    *("\n", "\r\n", "\r", "\t", "\0", "\x1c", "\x85", "\u2028", "\ufeff", "\ud800", "é", "𝒳", "<think>", "</think>"),
    *("[tool_call]", "\n[tool_call]\n", "[tool_result]", "tool_call.code = ", "thought = ", "\nthought = '''\n", "status = "),
    *("\u200b", "\u00a0", "**", "\\[", "<|message|>", "\n**[TOOL_CALL]**\n", "status: success\n", "\nHere it is:\n"),
    *("code = ", "\ncode = '''\n", '\ncode = """\n', "'''\n"),
    *("true", "nan", "-inf", "1e999", "0x", "1_000", "1979-05-27T07:32:00Z", "07:32", "1979-99-99"),
)


@attrs.define
class Finding:
    """What a run found.

    Attributes:
        cases: How many texts were parsed.
        outcomes: How many became what.
        worst_ratio: The highest cost, in ordinary replies of the same size.
        worst: The text that cost it.
        broken: Texts with an exception that is no ``AttpError``, and the exception.
    """

    cases: int = 0
    outcomes: Counter[str] = attrs.field(factory=Counter)
    worst_ratio: float = 0.0
    worst: str = ""
    broken: list[tuple[str, Exception]] = attrs.field(factory=list)


def cases(count: int, random_source: random.Random) -> Iterator[str]:
    """Yield texts of at most 32 KiB, each made from a reply by one to a few dozen changes."""
    small = [*WRAPPED.values(), *(text for text, _, _ in BROKEN.values() if len(text) < 4_000)]
    large = [*HOSTILE.values(), ordinary(MAX_SIZE)]
    for _ in range(count):
        text = random_source.choice(large if random_source.random() < 0.03 else small)
        for _ in range(min(40, int(random_source.expovariate(0.25)) + 1)):
            text = _changed(text, small, random_source)
        yield text[:MAX_SIZE]


def _changed(text: str, others: list[str], random_source: random.Random) -> str:
    start = random_source.randint(0, len(text))
    end = min(len(text), start + int(random_source.expovariate(0.1)))
    match random_source.randrange(7):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:end] + text[start:end] * random_source.choice((1, 2, 40)) + text[end:]
        case 2:
            other = random_source.choice(others)
            return text[:start] + other[random_source.randint(0, len(other)) :]
        case 3:
            return text[:start] + chr(random_source.randrange(0x180)) + text[start + 1 :]
        case 4:
            other = random_source.choice(others)
            return text[:start] + other + text[start:]
        case _:
            return text[:start] + random_source.choice(_FRAGMENTS) * random_source.choice((1, 1, 1, 2, 9)) + text[start:]


def cost(text: str, times: int) -> float:
    """Return the CPU seconds of one parse, the least of so many."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        with suppress(AttpError):
            parse(text)
        best = min(best, time.process_time() - began)
    return best


def ordinary_costs() -> dict[int, float]:
    """Return the CPU seconds of an ordinary reply by size, for each power of two."""
    sizes = [_MIN_SIZE << step for step in range((MAX_SIZE // _MIN_SIZE).bit_length())]
    return {size: cost(ordinary(size), 50) for size in sizes}


def ratio(text: str, ordinary_cost: dict[int, float], times: int) -> float:
    """Return what a text costs, in ordinary replies of its size; theirs is interpolated between powers of two."""
    size = max(_MIN_SIZE, len(text))
    below = 1 << (size.bit_length() - 1)
    lower, upper = ordinary_cost[below], ordinary_cost.get(2 * below, ordinary_cost[below])
    return cost(text, times) / (lower + (upper - lower) * (size - below) / below)


def fuzz(count: int, seed: int) -> Finding:
    """Parse so many texts, the same for the same seed."""
    found = Finding()
    ordinary_cost = ordinary_costs()
    for text in cases(count, random.Random(seed)):  # noqa: S311 (cases to repeat, no secrets)
        found.cases += 1
        try:
            reply = parse(text)
            found.outcomes["call" if reply.call else "answer"] += 1
        except AttpError as error:
            found.outcomes[type(error).__name__] += 1
        except Exception as error:  # noqa: BLE001 (whatever else it is, is what this looks for)
            found.broken.append((text, error))
            continue
        measured = ratio(text, ordinary_cost, 1)
        if measured > found.worst_ratio:
            measured = ratio(text, ordinary_cost, 25)  # a first measure holds what else the machine did
        if measured > found.worst_ratio:
            found.worst_ratio, found.worst = measured, text
    return found


def main() -> int:
    """Run, print what was found, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Fuzz the parser of replies.")
    arguments.add_argument("--cases", type=int, default=200_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    found = fuzz(given.cases, given.seed)
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(found.outcomes.items()))
    sys.stdout.write(
        f"replies: {found.cases} cases, seed {given.seed}: {outcomes}; {len(found.broken)} other exceptions\n"
        f"replies: most CPU time {found.worst_ratio:.1f} times an ordinary reply of its size ({len(found.worst)} characters)\n"
    )
    for text, error in found.broken[:10]:
        sys.stdout.write(f"{error!r}: {text[:500]!r}\n")
    if found.worst_ratio > MAX_RATIO:
        sys.stdout.write(f"too slow: {found.worst[:500]!r}\n")
    return int(bool(found.broken) or found.worst_ratio > MAX_RATIO)


if __name__ == "__main__":
    sys.exit(main())
