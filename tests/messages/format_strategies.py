"""Messages of the Anthropic and Responses formats, with much beside what they name."""

from typing import Any

from hypothesis import strategies as st

from tests.messages.strategies import texts, values

_own_keys = st.dictionaries(texts.map("x-".__add__), values, max_size=2)
_ids = st.text("abcXYZ019_-", min_size=1, max_size=12)
_words = texts.filter(str.strip)


def _made(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda known, own: {**own, **known}, st.fixed_dictionaries({"type": st.just(kind), **fields}), _own_keys)


_text = _made("text", text=_words)
_cached = _made("text", text=_words, cache_control=st.just({"type": "ephemeral"}))
_image = _made("image", source=st.just({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}))
_document = _made("document", source=st.just({"type": "url", "url": "https://example.com/a.pdf"}))
_thinking = _made("thinking", thinking=texts, signature=texts) | _made("redacted_thinking", data=texts)
_tool_use = _made("tool_use", id=_ids, name=texts, input=st.dictionaries(texts, values, max_size=2))
_tool_result = _made("tool_result", tool_use_id=_ids, content=texts | st.lists(_text, max_size=2))
_server = _made("server_tool_use", id=_ids, name=texts, input=values) | _made(
    "web_search_tool_result", tool_use_id=_ids, content=values
)
_unknown = _made("block_to_come", content=values)


def _distinct(blocks: list[dict[str, Any]]) -> bool:
    ids = [block.get("id", block.get("tool_use_id")) for block in blocks if block["type"] in ("tool_use", "tool_result")]
    return len(ids) == len(set(ids))


def _message(role: str, content: object, own: dict[str, Any]) -> dict[str, Any]:
    return {**own, "role": role, "content": content}


_user = _words | st.lists(_text | _cached | _image | _document | _tool_result | _unknown, min_size=1, max_size=4).filter(
    _distinct
)
_assistant = texts | st.lists(_text | _thinking | _tool_use | _server | _unknown, max_size=5).filter(_distinct)

anthropic = (
    st.builds(_message, st.just("user"), _user, _own_keys)
    | st.builds(_message, st.just("assistant"), _assistant, _own_keys)
    | st.builds(_message, st.just("system"), _words | st.lists(_text | _cached, min_size=1, max_size=2), _own_keys)
)

_parts = st.lists(_made("input_text", text=texts) | _made("input_image", image_url=texts) | _unknown, max_size=3)
_said = st.lists(_made("output_text", text=texts) | _made("refusal", refusal=texts), max_size=3)

responses = (
    st.builds(_message, st.sampled_from(["user", "system", "developer"]), texts | _parts, _own_keys)
    | st.builds(lambda value: {**value, "type": "message"}, st.builds(_message, st.just("assistant"), texts | _said, _own_keys))
    | _made("function_call", call_id=_ids, name=texts, arguments=texts)
    | _made("custom_tool_call", call_id=_ids, name=texts, input=texts)
    | _made("function_call_output", call_id=_ids, output=texts | _parts)
    | _made("computer_call", id=_ids, call_id=_ids, action=values)
    | _made("mcp_approval_request", id=_ids, name=texts, arguments=texts)
    | _made("mcp_approval_response", approval_request_id=_ids, approve=st.booleans())
    | _made("reasoning", id=_ids, summary=st.just([]), encrypted_content=texts)
    | _made("web_search_call", id=_ids, status=texts, action=values)
    | _made("item_to_come", content=values)
)
