"""Dates as the model reads them: short, in UTC, made of the times that entries have, which are ISO 8601 or empty."""

from collections.abc import Iterable
from datetime import UTC, datetime

from memci.errors import InvalidMessageError, shown


def span(times: Iterable[str]) -> tuple[str, str]:
    """Return the earliest and the latest of times in any order; empty ones do not count, and of none both are empty."""
    known = [at for at in times if at] or [""]
    return min(known), max(known)


def dates(first: str, last: str) -> str:
    """Return the days of two times, such as ``2023-05-08``, or ``2023-05-28..06-02`` for two; empty where there is no time."""
    low, high = sorted((first[:10], last[:10]))
    if low in ("", high):
        return high
    shared = next((length for length in (8, 5) if low[:length] == high[:length]), 0)  # the month, or the year
    return f"{low}..{high[shared:]}"


def moment(at: str) -> str:
    """Return the day and the minute of a time, such as ``2023-05-08 13:56``."""
    return at[:16].replace("T", " ")


def utc_text(at: object) -> str:
    """Return a time as ISO 8601 in UTC; a time without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(time, datetime):
            return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat()
    except (ValueError, OverflowError):
        pass
    message = f"{shown(at)} is not a time: give a datetime, or ISO 8601 text such as 2026-03-01T12:30:00+00:00"
    raise InvalidMessageError(message, path="at")
