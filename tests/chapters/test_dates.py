"""How dates and ranges of dates read."""

import pytest

from memci.chapters.dates import dates, moment, span


@pytest.mark.parametrize(
    ("expected", "first", "last"),
    [
        ("2023-05-08", "2023-05-08T13:56:00+00:00", "2023-05-08T23:59:59.000001+00:00"),
        ("2023-05-08..09", "2023-05-08T13:56:00+00:00", "2023-05-09T00:00:00+00:00"),
        ("2023-05-28..06-02", "2023-05-28T13:56:00+00:00", "2023-06-02T00:00:00+00:00"),
        ("2023-12-30..2024-01-02", "2023-12-30T13:56:00+00:00", "2024-01-02T00:00:00+00:00"),
        ("2023-05-08..2024-05-08", "2023-05-08T13:56:00+00:00", "2024-05-08T13:56:00+00:00"),
        ("2023-05-08..09", "2023-05-09T00:00:00+00:00", "2023-05-08T13:56:00+00:00"),
        ("2023-05-08", "", "2023-05-08T13:56:00+00:00"),
        ("2023-05-08", "2023-05-08T13:56:00+00:00", ""),
        ("", "", ""),
    ],
)
def test_dates_say_once_what_both_days_share(expected: str, first: str, last: str) -> None:
    """Two times give one day, or a range that says month and year once, earlier day first; a time that is missing is left out."""
    assert expected == dates(first, last)


def test_a_moment_is_a_day_and_a_minute() -> None:
    """A time is cut to the minute; one that is missing gives nothing."""
    assert ("2023-05-08 13:56", "") == (moment("2023-05-08T13:56:59.5+00:00"), moment(""))


def test_a_span_goes_from_the_earliest_to_the_latest() -> None:
    """Times may come in any order; those that are missing do not count, and nothing has no span."""
    assert ("2023-05-08", "2024-01-02") == span(["2023-06-01", "", "2024-01-02", "2023-05-08"])
    assert ("", "") == span([])
