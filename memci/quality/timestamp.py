"""Times as files of conversations tell them."""

import re
from datetime import datetime

_SPOKEN = re.compile(r"(\d{1,2}):(\d\d) ([ap])m on (\d{1,2}) ([A-Z][a-z]+),? (\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def iso_time(value: object) -> str | None:
    """Return a time in ISO 8601, taken from that or from a form such as ``1:56 pm on 8 May, 2023``; ``None`` for any other."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).isoformat()
    except ValueError:
        spoken = _SPOKEN.fullmatch(value)
    if spoken is None or spoken[5][:3] not in _MONTHS:
        return None
    hour = int(spoken[1]) % 12 + (12 if spoken[3] == "p" else 0)
    try:
        return datetime(int(spoken[6]), _MONTHS.index(spoken[5][:3]) + 1, int(spoken[4]), hour, int(spoken[2])).isoformat()  # noqa: DTZ001 (no zone is said)
    except ValueError:
        return None
