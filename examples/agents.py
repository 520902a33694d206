"""Three agents with one global context: a scout, a writer and a reviewer work through a task, and hand over to each other.

Run it with ``python examples/agents.py``. What the agents say was written down beforehand; a real one would be asked with
``window.messages``. Each notes what it found in the project's session, which all windows show.
"""

import memci

CONFIG = {"budget": {"window": 3_000, "reserve": 500}}
WORK = {
    "scout": [
        ("Find out which invoices of March are missing.", "Invoice 37 is missing: march.csv jumps from 36 to 38."),
        ("Who wrote the export?", "The export is of the tool ledger 4.2, by the accounting team."),
    ],
    "writer": [("Write to accounting.", "Dear colleagues, ledger 4.2 leaves out invoice 37 of March. Please send it again.")],
    "reviewer": [("Is the letter right?", "It is: the invoice and the tool's version are those that the scout found.")],
}
FOUND = {
    "scout": "Invoice 37 of March is missing.",
    "writer": "Accounting was written to.",
    "reviewer": "The letter was checked.",
}


def work(engine: memci.Engine, name: str) -> memci.Session:
    """Let an agent do its part, and note in the project what came of it."""
    agent = engine.session(name)
    if "project" not in agent.mounts():
        agent.mount("project", permission="read_write", capacity_tokens=600)
    for question, answer in WORK[name]:
        agent.append({"role": "user", "content": question})
        window = agent.window()
        assert window.tokens <= window.budget
        agent.append({"role": "assistant", "content": answer})
    note = agent.create_detail_page(FOUND[name], f"by {name}", WORK[name][-1][1], "project/usr-0")
    print(f"{name}: {window.tokens} of {window.budget} tokens, {window.breakdown.get('mounted', 0)} of the project; noted {note}")
    return agent


def main() -> None:
    """Run the task."""
    with memci.Engine("memory:", CONFIG, on_conflict="retry") as engine:
        with engine.session("project") as project:
            project.append({"role": "user", "content": "Bring the invoices of March in order. Write to accounting in English."})
        scout = work(engine, "scout")
        handed = scout.handoff("writer")
        print(f"scout handed over to writer as {handed}")
        writer = work(engine, "writer")
        page = writer.recall("scout/usr-1")  # the handoff names it
        print(f"writer recalls scout/usr-1: {page.messages[1]['content']}")
        writer.handoff("reviewer", include=["goal", "last"])
        reviewer = work(engine, "reviewer")
        reviewer.append({"role": "user", "content": "What is known by now?"})
        (shown,) = [m["content"] for m in reviewer.window().messages if str(m["content"]).startswith("[contents of project")]
        print(shown)
        print(reviewer.explain("scout/usr-1") if "scout" in reviewer.mounts() else reviewer.explain("writer/usr-1"))
        assert all(engine.session(name).verify().ok for name in ("project", *WORK))


if __name__ == "__main__":
    main()
