"""Let a model bring old pages back by itself: the session's tools, offered with each call and answered by the session.

Run it with ``python examples/tool_calls.py``. The model is a stand-in that searches, recalls what it found, and answers.
"""

import json
import re
from pathlib import Path
from typing import Any

import memci

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))["messages"]
QUESTION = "One more thing: a colleague wants an engraving too. What exactly did we put on Joost's?"


def model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand in for a model that is offered the tools: search, recall the page that looks right, answer from it."""
    last = messages[-1]["content"]
    found = re.search(r'"index":"(usr-\d+)"[^{}]*"snippet"[^{}]*Voor Joost', last)
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
            window = session.window(tools=session.toolbox.openai())
            reply = session.append(model(window.messages)).message
            print(f"{window.tokens} tokens sent, {window.breakdown['recalled']} of them recalled")
            for call in reply.get("tool_calls", ()):
                print("  call  ", call["function"]["name"], call["function"]["arguments"])
                result = session.append(session.handle_tool_call(call)).message
                print("  result", result["content"].replace("\n", "\n         "))
            if not reply.get("tool_calls"):
                print("  answer", reply["content"])
                return


if __name__ == "__main__":
    main()
