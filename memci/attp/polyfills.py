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
def _memci_made(all=all, int=int, isinstance=isinstance, len=len, max=max, min=min, range=range, sorted=sorted, sum=sum, zip=zip):
    from math import exp, fsum, log, sqrt

    def listed(data, least, name):
        values = [*data]
        if len(values) < least:
            raise ValueError(name + " requires at least " + ("one data point" if least == 1 else "two data points"))
        return values

    def total(values):
        return sum(values) if all(isinstance(value, int) for value in values) else fsum(values)

    def share(whole, count):
        return whole // count if isinstance(whole, int) and whole % count == 0 else whole / count

    def squares(values, center):
        center = share(total(values), len(values)) if center is None else center
        return total([(value - center) ** 2 for value in values])

    class statistics:
        StatisticsError = ValueError

        def mean(data):
            values = listed(data, 1, "mean")
            return share(total(values), len(values))

        def fmean(data, weights=None):
            values = listed(data, 1, "fmean")
            if weights is None:
                return fsum(values) / len(values)
            weights = [*weights]
            if len(weights) != len(values):
                raise ValueError("data and weights must be the same length")
            if not fsum(weights):
                raise ValueError("sum of weights must be non-zero")
            return fsum([value * weight for value, weight in zip(values, weights)]) / fsum(weights)

        def geometric_mean(data):
            values = listed(data, 1, "geometric_mean")
            if min(values) <= 0:
                raise ValueError("geometric_mean requires positive numbers")
            return exp(fsum([log(value) for value in values]) / len(values))

        def harmonic_mean(data):
            values = listed(data, 1, "harmonic_mean")
            if min(values) < 0:
                raise ValueError("harmonic_mean does not support negative values")
            return 0 if 0 in values else len(values) / fsum([1 / value for value in values])

        def median(data):
            values = sorted(listed(data, 1, "median"))
            middle = len(values) // 2
            return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

        def median_low(data):
            values = sorted(listed(data, 1, "median_low"))
            return values[(len(values) - 1) // 2]

        def median_high(data):
            values = sorted(listed(data, 1, "median_high"))
            return values[len(values) // 2]

        def multimode(data):
            counts = {}
            for value in data:
                counts[value] = counts.get(value, 0) + 1
            most = max(counts.values(), default=0)
            return [value for value, count in counts.items() if count == most]

        def mode(data):
            values = statistics.multimode(data)
            if not values:
                raise ValueError("no mode for empty data")
            return values[0]

        def variance(data, xbar=None):
            values = listed(data, 2, "variance")
            return share(squares(values, xbar), len(values) - 1)

        def stdev(data, xbar=None):
            values = listed(data, 2, "stdev")
            return sqrt(squares(values, xbar) / (len(values) - 1))

        def pvariance(data, mu=None):
            values = listed(data, 1, "pvariance")
            return share(squares(values, mu), len(values))

        def pstdev(data, mu=None):
            values = listed(data, 1, "pstdev")
            return sqrt(squares(values, mu) / len(values))

        def quantiles(data, *, n=4, method="exclusive"):
            if n < 1:
                raise ValueError("n must be at least 1")
            if method not in ("exclusive", "inclusive"):
                raise ValueError(f"Unknown method: {method!r}")
            values = sorted(listed(data, 2, "quantiles"))
            skip = 0 if method == "inclusive" else 1
            last = len(values) - 1 + 2 * skip
            cuts = []
            for place in range(1, n):
                low = min(max(place * last // n - skip, 0), len(values) - 2)
                rest = place * last - (low + skip) * n
                cuts.append((values[low] * (n - rest) + values[low + 1] * rest) / n)
            return cuts

        def covariance(x, y):
            first, second = [*x], [*y]
            if len(first) != len(second) or len(first) < 2:
                raise ValueError("covariance requires two lists of the same length, of at least two data points")
            a, b = fsum(first) / len(first), fsum(second) / len(second)
            return fsum([(left - a) * (right - b) for left, right in zip(first, second)]) / (len(first) - 1)

        def correlation(x, y):
            first, second = [*x], [*y]
            shared = statistics.covariance(first, second)
            spread = statistics.stdev(first) * statistics.stdev(second)
            if not spread:
                raise ValueError("at least one of the inputs is constant")
            return shared / spread

    return statistics


statistics = _memci_made()
