"""What `make demo` shows: two long conversations in small windows, a page recalled, a page for the browser, and figures.

Run it from the checkout with ``python examples/demo.py``. It keeps its sessions in ``.demo``.
"""

import json
import shutil
import subprocess
import sys
from typing import Any

STORE = ("--store", "file:.demo")
SUPPORT = (*STORE, "--session", "support")
QUESTION = "what is my customer number?"
PROGRESS_S = 5


def main() -> None:
    """Show the readable part first, then the figures."""
    shutil.rmtree(".demo", ignore_errors=True)
    title("A support conversation of 184 messages, sent through a window of 2,000 tokens")
    support = replay("support", "examples/support.json", budget=2_000)

    title("What the model sees at the end: contents page, working set, and the last turns word for word")
    memci("window", *SUPPORT)

    title("The first turn, usr-1, left the window long ago. Search lists it among the best matches")
    memci("search", *SUPPORT, "--limit", "3", QUESTION)

    title("Recall puts it back into the window, word for word, for a few turns")
    memci("recall", *SUPPORT, "usr-1")
    memci("show", *SUPPORT, "usr-1")

    title("Every file agrees with the journal")
    memci("verify", *SUPPORT)

    title("What each call to the model contained, and why, as a page for your browser: open .demo/support.html")
    memci("html", *SUPPORT, "--out", ".demo/support.html")

    title("Figures: the support conversation, and an agent's run of 120 messages in a window of 3,000 tokens")
    explain(support, replay("agent", "examples/agent.json", budget=3_000))
    print("\nNow open .demo/support.html in a browser, and read docs/tutorial.md.")


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)


def memci(*arguments: str) -> None:
    """Print a command, and what it prints."""
    print("$ memci", *(f'"{word}"' if " " in word else word for word in arguments), flush=True)
    subprocess.run([sys.executable, "-m", "memci", *arguments], check=True)  # noqa: S603 (the words above)


def replay(session: str, file: str, budget: int) -> dict[str, Any]:
    """Replay a conversation into the store and return its figures. Prints a dot every few seconds."""
    arguments = ["replay", file, "--budget", str(budget), *STORE, "--session", session]
    print("$ memci", *arguments, flush=True)
    command = [sys.executable, "-m", "memci", *arguments, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603 (the words above)
        while True:
            try:
                figures, _ = running.communicate(timeout=PROGRESS_S)
                break
            except subprocess.TimeoutExpired:
                print("replaying …", flush=True)
    if running.returncode:
        sys.exit(running.returncode)
    return dict(json.loads(figures))


def explain(support: dict[str, Any], agent: dict[str, Any]) -> None:
    """Print the figures of both replays in columns, each with what it means."""
    rows = [
        ("messages", "messages", "{:,}", "stored, and compared with what comes back"),
        ("messages that came back different", "unequal_messages", "{:,}", "must be 0"),
        ("windows over budget", "over_budget", "{:,}", "must be 0"),
        ("tool calls without their result", "broken_pairs", "{:,}", "must be 0"),
        ("folds", "folds", "{:,}", "times that old turns left the window, many at once"),
        ("tokens a call", "tokens_per_call", "{:,.0f}", "size of a prompt on average"),
        ("prefix reuse", "prefix_reuse", "{:.1%}", "share of a prompt that repeats the last one: cached by providers"),
        ("verbatim share of the budget", "verbatim_share", "{:.1%}", "the last turns, word for word, once the window is full"),
        (
            "cost a call",
            "cost_per_call",
            "{:,.0f}",
            "in tokens of plain input; cached ones at a tenth, writing to the cache at 1.25",
        ),
    ]
    print(f"{'':34}{'support':>9}{'agent':>9}")
    for name, key, form, meaning in rows:
        print(f"{name:34}{form.format(support[key]):>9}{form.format(agent[key]):>9}  {meaning}")
    others = [
        ("the same, one page folded a turn", "one_page_a_turn", "the cached start of the prompt breaks at every call"),
        ("the same, whole history sent", "whole_history", "if a model has room for it"),
    ]
    for name, way, meaning in others:
        print(f"{name:34}{support[way]['cost_per_call']:>9,.0f}{agent[way]['cost_per_call']:>9,.0f}  {meaning}")


if __name__ == "__main__":
    main()
