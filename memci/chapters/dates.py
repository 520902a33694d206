"""Dates as the model reads them: short, in UTC, made of the times that entries have, which are ISO 8601 or empty."""


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
