"""The picture of a window in docs/concepts.md, drawn from a real one: ``python examples/draw_window.py > docs/window.svg``.

On the left all messages of the support conversation, on the right what a model with a window of 2,000 tokens sees of them.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator
from html import escape
from itertools import accumulate
from pathlib import Path
from unicodedata import east_asian_width

import memci

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))
QUESTION = "One more thing: a colleague wants an engraving too. What exactly did we put on Joost's?"

COLOURS = {
    "system": "#8250df",
    "contents": "#9a6700",
    "work": "#bf3989",
    "active": "#0969da",
    "recalled": "#bc4c00",
    "open": "#1a7f37",
}
SAID = {
    "system": "system part: always there",
    "contents": "contents page: one message that lists what left",
    "work": "working set: what earlier turns used most",
    "active": "the last turns, word for word",
    "recalled": "a page that came back, word for word",
    "open": "what is being said now",
}
BEGINNINGS = {"[usr-0]": "contents", "[working set]": "work", "[recalled": "recalled"}
TOP, HEIGHT, WIDTH = 46, 420, 860
LINE, COLUMNS = 15, 82


def part_of(session: memci.Session, index: str) -> str:
    """Return the part of the window that shows a page: word for word, or the contents page."""
    state = session.facts(index).state
    shown = {memci.PageState.OPEN: "open", memci.PageState.ACTIVE: "active", memci.PageState.ATTACHED: "recalled"}
    return "system" if index.startswith("sys") else shown.get(state, "contents")


def text(x: float, y: float, words: str, colour: str = "#1f2328") -> str:
    """Return one line of text."""
    return f'<text x="{x}" y="{y:.1f}" fill="{colour}">{escape(words)}</text>'


def cut(line: str) -> str:
    """Return a line as far as there is room for it; characters of some scripts take two columns."""
    ends = list(accumulate(2 if east_asian_width(character) in "FW" else 1 for character in line))
    return line if len(ends) == bisect_right(ends, COLUMNS) else f"{line[: bisect_right(ends, COLUMNS)]}…"


def conversation(session: memci.Session) -> Iterator[str]:
    """Draw all pages, the oldest at the top, each as high as it has tokens."""
    pages = session.pages()
    scale, y = HEIGHT / sum(page.tokens for page in pages), float(TOP)
    for page in pages:
        part = part_of(session, page.index)
        colour, opacity, height = COLOURS[part], 0.35 if part == "contents" else 1, page.tokens * scale
        yield f'<rect x="30" y="{y:.1f}" width="120" height="{max(height - 0.8, 0.6):.1f}" fill="{colour}" opacity="{opacity}"/>'
        if part == "recalled":
            curve = f"M150 {y + height / 2:.1f} C 210 {y:.1f}, 210 {TOP + 330}, 268 {TOP + 372}"
            yield f'<path d="{curve}" fill="none" stroke="{colour}"/>'
        y += height


def window_parts(window: memci.Window) -> Iterator[str]:
    """Draw the parts of the window, each as high as it has tokens, with how it begins."""
    lines: dict[str, list[str]] = {part: [] for part in COLOURS}
    for message in window.messages:
        words = message["content"]
        part = "system" if message["role"] == "system" else "open" if words == QUESTION else "active"
        part = next((name for begins, name in BEGINNINGS.items() if words.startswith(begins)), part)
        lines[part] += [f"{message['role']}: {words}"] if part in ("active", "open") else words.splitlines()
    scale, y = (HEIGHT - 30 * len(COLOURS)) / window.tokens, float(TOP)
    for part, colour in COLOURS.items():
        height = window.breakdown[part] * scale + 30
        yield f'<rect x="270" y="{y:.1f}" width="560" height="{height - 3:.1f}" rx="3" fill="{colour}" opacity="0.12"/>'
        yield f'<rect x="270" y="{y:.1f}" width="4" height="{height - 3:.1f}" fill="{colour}"/>'
        yield text(284, y + 14, f"{SAID[part]} · {window.breakdown[part]} tokens", colour)
        for number, line in enumerate(lines[part][: int((height - 18) / LINE)], start=1):
            yield text(284, y + 14 + number * LINE, cut(line))
        y += height


def main() -> None:
    """Replay the conversation, recall a page, and print the picture."""
    config = {"budget": {"window": 2_500, "reserve": 500}, "recall": {"passages_tokens": 0, "protocol": "none"}}
    with memci.Engine("memory:", config=config) as engine, engine.session("support-42") as session:
        for message, at in zip(RECORDED["messages"], RECORDED["timestamps"], strict=True):
            if message["role"] == "assistant":
                session.window()
            session.append(message, at=at)
        session.append({"role": "user", "content": QUESTION})
        session.window()
        session.recall(session.search(QUESTION)[0].index)
        window = session.window()
        total = sum(page.tokens for page in session.pages())
        size = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 20}"'
        print(f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">')
        print(f'<rect width="{WIDTH}" height="{TOP + HEIGHT + 20}" fill="#ffffff"/>')
        print(text(30, 28, f"the conversation: {total:,} tokens"))
        print(text(270, 28, f"the window: {window.tokens:,} of {window.budget:,} tokens"))
        print(*conversation(session), *window_parts(window), "</svg>", sep="\n")


if __name__ == "__main__":
    main()
