"""Days that a text names: ``2023-05-08``, ``8 May 2023``, ``May 8th``, ``8. Mai``, ``8 de mayo``, ``5月8日``."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date

# In English, German, French, Spanish, Italian, Portuguese, Dutch, Polish and Russian, as dates write them.
_MONTH_NAMES = (
    "jan january januar janvier enero gennaio janeiro januari stycznia января",
    "feb february februar février febrero febbraio fevereiro februari lutego февраля",
    "mar march märz mars marzo março maart marca марта",
    "apr april avril abril aprile kwietnia апреля",
    "may mai mayo maggio maio mei maja мая",
    "jun june juni juin junio giugno junho czerwca июня",
    "jul july juli juillet julio luglio julho lipca июля",
    "aug august août agosto augustus sierpnia августа",
    "sep sept september septembre septiembre settembre setembro września сентября",
    "oct october oktober octobre octubre ottobre outubro października октября",
    "nov november novembre noviembre novembro listopada ноября",
    "dec december dezember décembre diciembre dicembre dezembro grudnia декабря",
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()}
_NAME = f"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_YEAR = "(?P<year>(?:19|20)\\d\\d)"
_DAY = "(?P<day>\\d{1,2})"
_FORMS = (
    re.compile(f"(?<![\\d-]){_YEAR}[-/.](?P<month>\\d{{1,2}})[-/.]{_DAY}(?!\\d)"),
    re.compile(f"(?<!\\d)(?:{_YEAR}年)?(?P<month>\\d{{1,2}})月{_DAY}[日号號]"),
    re.compile(f"(?<![\\d.]){_DAY}\\.(?P<month>\\d{{1,2}})\\.{_YEAR}(?!\\w)"),
    re.compile(
        f"(?<![\\d.,]){_DAY}(?:st|nd|rd|th|er|º|\\.)?\\s+(?:of\\s+|de\\s+|di\\s+)?{_NAME}\\b\\.?(?:,?\\s+(?:de\\s+)?{_YEAR})?"
    ),
    re.compile(f"\\b{_NAME}\\.?\\s+{_DAY}(?:st|nd|rd|th)?(?![\\d:.,]\\d|\\w)(?:,?\\s+{_YEAR})?"),
)
_LAST_CHARACTER = 4_000  # of a text that is read


def days_in(text: str, last: str) -> list[str]:
    """Return the days that a text names, as ISO 8601, in order; one without a year is the latest up to the day *last*.

    O(the first 4,000 characters).
    """
    lowered = text[:_LAST_CHARACTER].lower()
    matches = sorted((match for form in _FORMS for match in form.finditer(lowered)), key=re.Match.start)
    return list(dict.fromkeys(day for match in matches for day in _days(match.groupdict(), last)))


def _days(parts: dict[str, str | None], last: str) -> Iterator[str]:
    month = parts.get("month") or _MONTHS[parts.get("name") or ""]
    year = parts["year"]
    last_year = int(last[:4]) if last[:4].isdecimal() else 0
    for number in (int(year),) if year else (last_year, last_year - 1):
        with suppress(ValueError):  # there is no such day
            day = date(number, int(month), int(parts["day"] or 0)).isoformat()
            if year or day <= last[:10]:
                yield day
                return
