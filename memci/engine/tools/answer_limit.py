"""How large the answer of a tool may be, so that the message that holds it stands whole in a window."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar, cast

from memci.engine.core.core import Core
from memci.engine.view.planner import next_budget
from memci.messages import codec
from memci.messages.tokens.media import image_tokens

BUDGET_SHARE = 0.25
"""Share of the budget that one answer may take."""

LEAST_TOKENS = 256
"""What an answer may take in any window, with what frames it."""

_FRAMING_TOKENS = 64  # the role, the call's id, and the keys around an answer in ATTP

_SLACK = 0.95  # what is cut in proportion often fits at once, though keys stay and text is denser in some places

_Row = TypeVar("_Row", bound=Mapping[str, object])


def part(core: Core, text: str, answer: Callable[[str], object]) -> str:
    """Return as much of the beginning of a text as the answer made of it has room for, one character at least.

    The size is estimated from a count of all of it: two or three counts in most cases. O(length of the text).
    """
    room = answer_tokens(core)
    while len(text) > 1 and (tokens := _count(core, answer(text))) > room:
        text = text[: max(1, int(_SLACK * len(text) * room / tokens))]
    return text


def rows(core: Core, found: Sequence[_Row], answer: Callable[[Sequence[_Row]], object], key: str) -> list[_Row]:
    """Return as many of the first rows as the answer made of them has room for; one at least, if need be cut in *key*."""
    chosen, room = list(found), answer_tokens(core)
    while len(chosen) > 1 and (tokens := _count(core, answer(chosen))) > room:
        del chosen[max(1, min(len(chosen) - 1, len(chosen) * room // tokens)) :]
    if len(chosen) != 1:
        return chosen
    (row,) = chosen

    def cut(text: str) -> list[_Row]:
        return [cast("_Row", {**row, key: text})]

    return cut(part(core, str(row[key]), lambda text: answer(cut(text))))


def pictures(core: Core, text: str, found: Sequence[_Row]) -> list[_Row]:
    """Return the first pictures for which there is room beside the text of an answer."""
    room = answer_tokens(core) - core.counter.count(text)
    sizes = accumulate(image_tokens(picture) for picture in found)
    return [picture for picture, tokens in zip(found, sizes, strict=True) if tokens <= room]


def answer_tokens(core: Core) -> int:
    """Return how much a tool may answer: a quarter of the last window's budget, before the first of the configured one."""
    share = int(BUDGET_SHARE * next_budget(core.state, core.config) / core.state.scale)
    return max(LEAST_TOKENS, share) - _FRAMING_TOKENS


def _count(core: Core, value: object) -> int:
    # A character that TOML has to escape, and JSON has not, counts as in TOML.
    return core.counter.count(codec.encode(value).decode().replace("\x7f", "\\u007f"))
