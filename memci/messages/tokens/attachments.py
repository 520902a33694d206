"""What sound and files cost that a message holds as base64: an estimate from their size, never the count of the base64 text."""

from collections.abc import Mapping

_AUDIO_BYTES_A_TOKEN = 400
"""OpenAI counts a token for each 100 ms of a user's audio (source: OpenAI's guide on realtime costs); this is 32 kbit/s, the
least that speech is commonly coded with, so that richer files count too high rather than too low."""

_FILE_BYTES_A_TOKEN = 10
"""No rule is published for files by size. A PDF page of 30 kB comes to 1,500 to 3,000 tokens of text and picture; pages of bare
text may hold more tokens for their bytes."""


def attachment_tokens(block: Mapping[str, object]) -> int | None:
    """Estimate an ``input_audio``, ``file`` or ``input_file`` block that holds its bytes; ``None`` for any other block."""
    match block:
        case {"type": "input_audio", "input_audio": {"data": str(base64)}}:
            return 1 + len(base64) * 3 // 4 // _AUDIO_BYTES_A_TOKEN
        case {"type": "file", "file": {"file_data": str(base64)}} | {"type": "input_file", "file_data": str(base64)}:
            return 1 + len(base64) * 3 // 4 // _FILE_BYTES_A_TOKEN
        case _:
            return None
