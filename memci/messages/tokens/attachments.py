"""What attachments and encrypted texts cost, by an estimate from their size: base64 is never counted as the text that it is."""

from collections.abc import Mapping

_AUDIO_BYTES_A_TOKEN = 400
"""OpenAI counts a token for each 100 ms of a user's audio (source: OpenAI's guide on realtime costs); this is 32 kbit/s, the
least that speech is commonly coded with, so that richer files count too high rather than too low."""

_SPOKEN_BYTES_A_TOKEN = 200
"""OpenAI counts a token for each 50 ms of the assistant's audio (source: as above), at the same 32 kbit/s."""

_FILE_BYTES_A_TOKEN = 10
"""No rule is published for files by size. A PDF page of 30 kB comes to 1,500 to 3,000 tokens of text and picture; pages of bare
text may hold more tokens for their bytes."""

_FILE_TOKENS = 3_000
"""A file that is named only, by its id or a web address: a page of the costlier kind (source: Anthropic's guide on PDF support,
1,500 to 3,000 tokens of text a page). ``report_usage`` corrects what a longer one costs."""

_OPAQUE_CHARACTERS_A_TOKEN = 4
"""Of encrypted text in base64. No rule is published; a token of English is about four bytes, which base64 writes as 5.3
characters, so that this is high for most texts."""

OPAQUE_KEYS = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"})
"""Under which keys encrypted texts stand."""


def attachment_tokens(block: Mapping[str, object]) -> int | None:
    """Estimate a block of sound, a file or a document that holds its bytes or names it; ``None`` for any other block."""
    match block:
        case {"type": "input_audio", "input_audio": {"data": str(base64)}}:
            return 1 + len(base64) * 3 // 4 // _AUDIO_BYTES_A_TOKEN
        case (
            {"type": "file", "file": {"file_data": str(base64)}}
            | {"type": "input_file", "file_data": str(base64)}
            | {"type": "document", "source": {"type": "base64", "data": str(base64)}}
        ):
            return 1 + len(base64) * 3 // 4 // _FILE_BYTES_A_TOKEN
        case (
            {"type": "document", "source": {"type": "url" | "file"}}
            | {"type": "input_file"}
            | {"type": "file", "file": {"file_id": str()}}
        ):
            return _FILE_TOKENS
        case _:
            return None


def bytes_mark(block: object) -> str:
    """Return what stands in texts for a block that holds the bytes of a file or of sound: its kind and its name.

    Empty for any other block.
    """
    match block:
        case {"type": "input_audio", "input_audio": {"data": str()}}:
            return "[sound]"
        case {"type": "file", "file": {"file_data": str(), **names}} | {"type": "input_file", "file_data": str(), **names}:
            return f"[file] {names.get('filename') or ''}".rstrip()
        case {"type": "document", "source": {"type": "base64"}, **names}:
            return f"[document] {names.get('title') or ''}".rstrip()
        case _:
            return ""


def spoken_tokens(base64: str) -> int:
    """Estimate what the assistant said aloud, in base64."""
    return 1 + len(base64) * 3 // 4 // _SPOKEN_BYTES_A_TOKEN


def encrypted_tokens(text: str) -> int:
    """Estimate an encrypted text: reasoning, signatures, the pages behind search results."""
    return -(-len(text) // _OPAQUE_CHARACTERS_A_TOKEN)
