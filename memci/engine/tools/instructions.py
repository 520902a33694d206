"""What the system part tells the model of recalling."""

import functools

_INSTRUCTIONS = (
    "Earlier pages of this conversation are listed in a contents page, under an index such as [usr-12] or, below a range such as "
    "[usr-20..51], by number. When you need one in full, call the tool recall_page with its index (a range gives a list of its "
    "pages); search_pages finds pages by words."
)


@functools.cache
def instructions(protocol: str) -> str:
    """Return how the model is told to recall; empty for the protocol ``none``, and with all of ATTP for ``attp``."""
    if protocol == "attp":
        from memci.engine.tools.recall_tools import attp_prompt  # noqa: PLC0415 (for those who speak ATTP)

        return f"{_INSTRUCTIONS}\n\n{attp_prompt()}"
    return _INSTRUCTIONS if protocol == "native" else ""
