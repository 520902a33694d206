"""What may come in: JSON values, and messages of the OpenAI wire format with much beside what it names."""

from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=()), max_size=30)
"""Any text, lone surrogates and control characters included."""

numbers = st.integers() | st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)

_own_keys = st.dictionaries(texts.map("x-".__add__), values, max_size=2)

text_parts = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
other_parts = st.builds(
    lambda kind, rest: {**rest, "type": kind}, st.sampled_from(["image_url", "input_audio", "new"]), _own_keys
)
contents = texts | st.lists(text_parts | other_parts, max_size=3)

calls = st.builds(
    lambda call_id, name, arguments, rest: {
        **rest,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    },
    texts.filter(bool),
    texts,
    texts,
    _own_keys,
)


def _message(role: str, content: object, rest: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": content, **rest}


spoken = st.builds(_message, st.sampled_from(["system", "developer", "user", "assistant"]), contents, _own_keys)
calling = st.builds(
    lambda content, made, rest: {"role": "assistant", "content": content, "tool_calls": made, **rest},
    st.none() | contents,
    st.lists(calls, min_size=1, max_size=3, unique_by=lambda call: call["id"]),
    _own_keys,
)
answering = st.builds(
    lambda call_id, content, rest: {"role": "tool", "tool_call_id": call_id, "content": content, **rest},
    texts.filter(bool),
    contents,
    _own_keys,
)
messages: st.SearchStrategy[dict[str, Any]] = spoken | calling | answering
