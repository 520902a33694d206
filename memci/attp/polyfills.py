"""What the sandbox lacks and a model's code may use, in Python that the sandbox runs: read as text, part by part, never imported.

Built-ins have names of their own here, as code may well call its total ``sum``.
"""

# Lists that hold themselves many times over are small in the sandbox and endless outside: values leave it as text only, of a
# length that was checked, or as that length.
# for _memci_text
from json import dumps as _memci_dumps


def _memci_text(value, _memci_len=len):
    text = _memci_dumps(value, ensure_ascii=False, allow_nan=False)
    return text if _memci_len(text) <= _memci_limit else _memci_len(text)


# Generator expressions are lists in the sandbox: next() takes from them what it would take from a generator.
# for next
def next(iterator, *default, _memci_next=next, _memci_isinstance=isinstance, _memci_list=list):
    if not _memci_isinstance(iterator, _memci_list):
        return _memci_next(iterator, *default)
    if iterator:
        return iterator.pop(0)
    if default:
        return default[0]
    raise StopIteration


# The functions have the names, arguments and errors of those in https://docs.python.org/3/library/statistics.html; sums of floats
# are exact (math.fsum), and what follows from them is rounded as floats are, where the standard library goes on in fractions.
# for statistics
import math as _memci_math

_memci_all, _memci_any, _memci_int, _memci_isinstance = all, any, int, isinstance
_memci_len, _memci_list, _memci_max = len, list, max
_memci_min, _memci_range, _memci_repr, _memci_sorted, _memci_sum, _memci_zip = min, range, repr, sorted, sum, zip


def _memci_listed(data, least, name):
    values = _memci_list(data)
    if _memci_len(values) < least:
        raise ValueError(name + " requires at least " + ("one data point" if least == 1 else "two data points"))
    return values


def _memci_total(values):
    whole = _memci_all(_memci_isinstance(value, _memci_int) for value in values)
    return _memci_sum(values) if whole else _memci_math.fsum(values)


def _memci_share(total, count):
    return total // count if _memci_isinstance(total, _memci_int) and total % count == 0 else total / count


def _memci_squares(values, center):
    center = _memci_share(_memci_total(values), _memci_len(values)) if center is None else center
    return _memci_total([(value - center) ** 2 for value in values])


def _memci_multimode(data):
    counts = {}
    for value in data:
        counts[value] = counts.get(value, 0) + 1
    most = _memci_max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]


def _memci_stdev(data, xbar=None):
    values = _memci_listed(data, 2, "stdev")
    return _memci_math.sqrt(_memci_squares(values, xbar) / (_memci_len(values) - 1))


def _memci_covariance(x, y):
    first, second = _memci_list(x), _memci_list(y)
    if _memci_len(first) != _memci_len(second) or _memci_len(first) < 2:
        raise ValueError("covariance requires two lists of the same length, of at least two data points")
    a, b = _memci_math.fsum(first) / _memci_len(first), _memci_math.fsum(second) / _memci_len(second)
    return _memci_math.fsum([(left - a) * (right - b) for left, right in _memci_zip(first, second)]) / (_memci_len(first) - 1)


class statistics:
    StatisticsError = ValueError
    multimode = _memci_multimode
    stdev = _memci_stdev
    covariance = _memci_covariance

    def mean(data):
        values = _memci_listed(data, 1, "mean")
        return _memci_share(_memci_total(values), _memci_len(values))

    def fmean(data, weights=None):
        values = _memci_listed(data, 1, "fmean")
        if weights is None:
            return _memci_math.fsum(values) / _memci_len(values)
        weights = _memci_list(weights)
        if _memci_len(weights) != _memci_len(values):
            raise ValueError("data and weights must be the same length")
        total = _memci_math.fsum(weights)
        if not total:
            raise ValueError("sum of weights must be non-zero")
        return _memci_math.fsum([value * weight for value, weight in _memci_zip(values, weights)]) / total

    def geometric_mean(data):
        values = _memci_listed(data, 1, "geometric_mean")
        if _memci_any(value <= 0 for value in values):
            raise ValueError("geometric_mean requires positive numbers")
        return _memci_math.exp(_memci_math.fsum([_memci_math.log(value) for value in values]) / _memci_len(values))

    def harmonic_mean(data):
        values = _memci_listed(data, 1, "harmonic_mean")
        if _memci_any(value < 0 for value in values):
            raise ValueError("harmonic_mean does not support negative values")
        if _memci_any(value == 0 for value in values):
            return 0
        return _memci_len(values) / _memci_math.fsum([1 / value for value in values])

    def median(data):
        values = _memci_sorted(_memci_listed(data, 1, "median"))
        middle = _memci_len(values) // 2
        return values[middle] if _memci_len(values) % 2 else (values[middle - 1] + values[middle]) / 2

    def median_low(data):
        values = _memci_sorted(_memci_listed(data, 1, "median_low"))
        return values[(_memci_len(values) - 1) // 2]

    def median_high(data):
        values = _memci_sorted(_memci_listed(data, 1, "median_high"))
        return values[_memci_len(values) // 2]

    def mode(data):
        values = _memci_multimode(data)
        if not values:
            raise ValueError("no mode for empty data")
        return values[0]

    def variance(data, xbar=None):
        values = _memci_listed(data, 2, "variance")
        return _memci_share(_memci_squares(values, xbar), _memci_len(values) - 1)

    def pvariance(data, mu=None):
        values = _memci_listed(data, 1, "pvariance")
        return _memci_share(_memci_squares(values, mu), _memci_len(values))

    def pstdev(data, mu=None):
        values = _memci_listed(data, 1, "pstdev")
        return _memci_math.sqrt(_memci_squares(values, mu) / _memci_len(values))

    def quantiles(data, *, n=4, method="exclusive"):
        if n < 1:
            raise ValueError("n must be at least 1")
        if method not in ("exclusive", "inclusive"):
            raise ValueError("Unknown method: " + _memci_repr(method))
        values = _memci_sorted(_memci_listed(data, 2, "quantiles"))
        last = _memci_len(values) - 1 if method == "inclusive" else _memci_len(values) + 1
        cuts = []
        for place in _memci_range(1, n):
            at = place * last // n
            if method == "exclusive":
                at = _memci_min(_memci_max(at, 1), _memci_len(values) - 1)
            rest = place * last - at * n
            low = at if method == "inclusive" else at - 1
            cuts.append((values[low] * (n - rest) + values[low + 1] * rest) / n)
        return cuts

    def correlation(x, y):
        first, second = _memci_list(x), _memci_list(y)
        shared = _memci_covariance(first, second)
        spread = _memci_stdev(first) * _memci_stdev(second)
        if not spread:
            raise ValueError("at least one of the inputs is constant")
        return shared / spread
