"""A support chat in a small window: it folds as it grows, and an old page comes back when a question needs it.

Run it with ``python examples/support_bot.py``. No model is called: the shop's replies are the recorded ones.
"""

import json
import re
from pathlib import Path
from typing import Any

import memci

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))["messages"]
WIDTH = 98
QUESTION = "One more thing: a colleague wants an engraving too. What exactly did we put on Joost's?"


def model(messages: list[dict[str, Any]], recorded: str | None = None) -> dict[str, Any]:
    """Stand in for a model: say what was recorded, or else look for the engraving in what a model would see.

    With a real client: ``client.chat.completions.create(model="…", messages=messages).choices[0].message``.
    """
    seen = "\n".join(message["content"] for message in messages)
    found = re.search(r"Voor Joost, [\d·]+", seen)
    answer = recorded or (f"It says: {found.group()}." if found else "I cannot see that any more.")
    return {"role": "assistant", "content": answer}


def tell(notice: memci.Notice) -> None:
    """Print what happens in the session, a line each."""
    match notice:
        case memci.Fold():
            folded = f"{notice.pages[0]} to {notice.pages[-1]}" if notice.pages else "contents page only"
            print(f"fold    {folded}: the window goes from {notice.tokens_before} to {notice.tokens_after} tokens")
        case memci.Recall():
            print(f"recall  {notice.page}")
        case memci.ZoneChange():
            print(f"zone    {notice.zone}: {notice.tokens} of {notice.budget} tokens")


def draw(window: memci.Window) -> None:
    """Print a window, long lines cut."""
    parts = ", ".join(f"{part} {tokens}" for part, tokens in window.breakdown.items() if tokens)
    print(f"\nthe window: {window.tokens} of {window.budget} tokens ({parts})")
    for message in window.messages:
        lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in message["content"].splitlines()]
        print(f"{message['role']:>9}  " + "\n           ".join(lines))


def main() -> None:
    """Replay the conversation, then ask for something that was said long ago."""
    config = {
        "budget": {"window": 2_500, "reserve": 500},
        "recall": {"passages_tokens": 0, "protocol": "none"},
    }
    with memci.Engine("memory:", config=config) as engine, engine.session("support-42") as session:
        session.observe(tell)
        for message in RECORDED:
            if message["role"] == "assistant":
                session.append(model(session.window().messages, message["content"]))
            else:
                session.append(message)

        session.append({"role": "user", "content": QUESTION})
        print("without the page:", model(session.window().messages)["content"])
        hit = session.search(QUESTION)[0]
        print(f"search  found {hit.entry}: {hit.snippet}")
        session.recall(hit.index)
        window = session.window()
        reply = session.append(model(window.messages))
        print("with the page:", reply.message["content"])
        draw(window)


if __name__ == "__main__":
    main()
