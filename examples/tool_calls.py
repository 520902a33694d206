"""Let a model bring old pages back by itself: two tools, offered with each call and answered from the session.

Run it with ``python examples/tool_calls.py``. The model is a stand-in that searches, recalls what it found, and answers.
"""

import json
import re
from pathlib import Path
from typing import Any

import memci

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))["messages"]
QUESTION = "One more thing: a colleague wants an engraving too. What exactly did we put on Joost's?"


def tool(name: str, parameter: str, description: str) -> dict[str, Any]:
    """Return the schema of a tool with one parameter, a text."""
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


# With ``recall.protocol: native``, the default, the window tells the model of these two names.
TOOLS = [
    tool("search_pages", "query", "Find earlier pages of this conversation by words."),
    tool("recall_page", "index", "Bring an earlier page back in full, by its index, such as usr-12."),
]


def answer(session: memci.Session, call: dict[str, Any]) -> dict[str, Any]:
    """Run one tool call, and return the message to append. What went wrong is text for the model too."""
    arguments = json.loads(call["function"]["arguments"])
    try:
        if call["function"]["name"] == "search_pages":
            hits = session.search(arguments["query"], limit=3)
            content = "\n".join(f"[{hit.index}] {hit.snippet}" for hit in hits) or "nothing was found"
        else:
            page = session.recall(arguments["index"])
            content = f"page {page.index} stands in the window now: {len(page)} entries, {page.tokens} tokens"
    except memci.MemciError as error:
        content = f"error: {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand in for a model that is offered ``TOOLS``: search, recall the page that looks right, answer from it."""
    last = messages[-1]["content"]
    found = re.search(r"^\[(usr-\d+)\].*Voor Joost", last, re.MULTILINE)
    if last == QUESTION:
        return calling("call_1", "search_pages", {"query": "engraving for Joost"})
    if found:
        return calling("call_2", "recall_page", {"index": found.group(1)})
    block = next(text for message in messages if (text := message["content"] or "").startswith("[recalled page"))
    return {"role": "assistant", "content": "It says: " + re.findall(r"Voor Joost, [\d·]+", block)[0]}


def calling(call_id: str, name: str, arguments: dict[str, str]) -> dict[str, Any]:
    """Return an assistant message with one tool call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def main() -> None:
    """Take in a long conversation, ask for something from its middle, and run the loop until the model has answered."""
    config = {"budget": {"window": 2_500, "reserve": 500}}
    with memci.Engine("memory:", config=config) as engine, engine.session("support-42") as session:
        session.extend(RECORDED)
        session.append({"role": "user", "content": QUESTION})
        while True:
            window = session.window(tools=TOOLS)
            reply = session.append(model(window.messages)).message
            print(f"{window.tokens} tokens sent, {window.breakdown['recalled']} of them recalled")
            for call in reply.get("tool_calls", ()):
                print("  call  ", call["function"]["name"], call["function"]["arguments"])
                result = session.append(answer(session, call)).message
                print("  result", result["content"].replace("\n", "\n         "))
            if not reply.get("tool_calls"):
                print("  answer", reply["content"])
                return


if __name__ == "__main__":
    main()
