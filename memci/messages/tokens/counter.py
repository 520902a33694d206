"""Counters of tokens, by their names in the configuration."""

import functools
from typing import Protocol

from memci.errors import ConfigError, shown
from memci.messages.tokens.encodings import ENCODINGS, SAME_TEXT, TiktokenCounter

APPROXIMATE = "approximate"


class TokenCounter(Protocol):
    """Counts the tokens of a text. The same text gives the same count for ever; counting may come from several threads."""

    @property
    def name(self) -> str:
        """The name under which ``get_counter`` gives this counter again."""

    @property
    def exact(self) -> bool:
        """Whether it counts with the tokeniser itself; an estimate otherwise."""

    @property
    def margin(self) -> float:
        """What to multiply a sum of counts with before it is compared with a budget; 1.0 where counts are exact."""

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length)."""


def get_counter(name: str) -> TokenCounter:
    """Return the counter for an encoding, for an OpenAI model's name, or for ``approximate``.

    The vocabulary is loaded at the first count, and never downloaded. All names of one encoding give the same counter, whose
    ``name`` is the encoding's. ConfigError where no tokeniser is known for the name.
    """
    if name == APPROXIMATE:
        from memci.messages.tokens.approximate import ApproximateCounter  # noqa: PLC0415 (compiles large patterns)

        return ApproximateCounter()
    return _tiktoken_counter(name if name in ENCODINGS else _encoding_of_model(name))


_tiktoken_counter = functools.cache(TiktokenCounter)


def _encoding_of_model(name: str) -> str:
    from tiktoken.model import MODEL_TO_ENCODING, encoding_name_for_model  # noqa: PLC0415 (22 ms, not needed for an encoding's name)

    try:
        encoding = encoding_name_for_model(name)
    except KeyError:
        encoding = name
    encoding = SAME_TEXT.get(encoding, encoding)
    if encoding in ENCODINGS:
        return encoding
    import difflib  # noqa: PLC0415 (only for this error)

    near = difflib.get_close_matches(name, [*ENCODINGS, APPROXIMATE, *MODEL_TO_ENCODING], n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    message = (
        f"there is no tokeniser for {shown(name)}{hint}: give {' or '.join(ENCODINGS)}, the name of an OpenAI chat model, or "
        "approximate, which estimates the tokens of any model and keeps a margin"
    )
    raise ConfigError(message, path="counter")
