"""Seven views of one conversation, with their tokens: what is hidden, opened, closed, noted, removed, and found again.

Run it with ``python examples/seven_views.py``. No model is called: the application edits the page tree.
"""

import json
from pathlib import Path

import memci

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))["messages"]
WIDTH = 98
RULES = "Refunds take three working days. " + " ".join(
    f"Rule {number}: a return of class {number} needs the parcel's number, two pictures and the consent of the depot."
    for number in range(1, 31)
)


def show(number: int, words: str, window: memci.Window) -> None:
    """Print what a window shows of the tree: its first line, and the lines of what is listed, hidden or opened."""
    parts = ", ".join(f"{part} {tokens}" for part, tokens in window.breakdown.items() if tokens)
    print(f"view {number}: {words}: {window.tokens} of {window.budget} tokens ({parts})")
    for message in window.messages:
        for line in message["content"].splitlines():
            if line.startswith("["):
                print("    " + (line if len(line) <= WIDTH else f"{line[:WIDTH]}…"))


def main() -> None:
    """Take in a long conversation, put it in order, and show what each step makes of the window."""
    config = {"budget": {"window": 6_000, "reserve": 1_000}, "contents": {"max_tokens": 700}}
    with memci.Engine("memory:", config=config) as engine, engine.session("support-42") as session:
        said = [message for message in RECORDED if message["role"] != "system"]
        session.set_system(
            [*(message for message in RECORDED if message["role"] == "system"), {"role": "system", "content": RULES}]
        )
        session.update_page("sys-2", name="Rules of the shop", description="how refunds and returns are handled")
        session.extend(said)
        session.append({"role": "user", "content": "One more thing about the machine."})
        repair = session.create_contents_page("Repair", "the leak of March and the technician's visit", children=[*range(22, 27)])
        machine = session.create_contents_page(
            "Machine", "the Corvina espresso machine: delivery, settings, repair", children=[repair, 9, 10]
        )

        session.hide_details("sys-2")
        session.fold()
        show(1, "the rules hidden behind their line", session.window())
        session.expand_details("sys-2")
        show(2, "the rules opened", session.window())
        session.hide_details("sys-2")
        session.expand_details(machine)
        session.expand_details(repair)
        show(3, "a nested directory opened", session.window())
        session.hide_details(machine)
        show(4, "closed again", session.window())
        session.create_detail_page(
            "Phone number", "the old one is wrong", "Call +31 6 5513 0862, never the number in the account."
        )
        session.fold()
        show(5, "a lesson noted", session.window())
        session.remove_page(machine)
        session.fold()
        show(6, "the directory removed, with all that is in it", session.window())
        hit = session.search("leak gasket technician")[0]
        print(f"search: {hit.index}, {hit.state.value}: {hit.snippet[:WIDTH]}")
        session.restore(machine)
        session.expand_details(hit.index)
        session.fold()
        show(7, "found by search, and restored", session.window())


if __name__ == "__main__":
    main()
