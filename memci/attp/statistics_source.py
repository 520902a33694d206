"""The module ``statistics`` of the model's code, in Python that the sandbox runs.

The sandbox has no such module. The functions have the names, arguments and errors of those in the standard library
(https://docs.python.org/3/library/statistics.html); sums of floats are exact (``math.fsum``), and what follows from them is
rounded as floats are, where the standard library goes on in fractions. Built-ins have names of their own here, as code may
well call its total ``sum``.
"""

STATISTICS = """\
import math as __memci_math
__memci_all, __memci_any, __memci_int, __memci_isinstance = all, any, int, isinstance
__memci_len, __memci_list, __memci_max = len, list, max
__memci_min, __memci_range, __memci_repr, __memci_sorted, __memci_sum, __memci_zip = min, range, repr, sorted, sum, zip
def __memci_listed(data, least, name):
    values = __memci_list(data)
    if __memci_len(values) < least:
        raise ValueError(name + " requires at least " + ("one data point" if least == 1 else "two data points"))
    return values
def __memci_total(values):
    whole = __memci_all(__memci_isinstance(value, __memci_int) for value in values)
    return __memci_sum(values) if whole else __memci_math.fsum(values)
def __memci_share(total, count):
    return total // count if __memci_isinstance(total, __memci_int) and total % count == 0 else total / count
def __memci_mean(data):
    values = __memci_listed(data, 1, "mean")
    return __memci_share(__memci_total(values), __memci_len(values))
def __memci_fmean(data, weights=None):
    values = __memci_listed(data, 1, "fmean")
    if weights is None:
        return __memci_math.fsum(values) / __memci_len(values)
    weights = __memci_list(weights)
    if __memci_len(weights) != __memci_len(values):
        raise ValueError("data and weights must be the same length")
    total = __memci_math.fsum(weights)
    if not total:
        raise ValueError("sum of weights must be non-zero")
    return __memci_math.fsum([value * weight for value, weight in __memci_zip(values, weights)]) / total
def __memci_geometric_mean(data):
    values = __memci_listed(data, 1, "geometric_mean")
    if __memci_any(value <= 0 for value in values):
        raise ValueError("geometric_mean requires positive numbers")
    return __memci_math.exp(__memci_math.fsum([__memci_math.log(value) for value in values]) / __memci_len(values))
def __memci_harmonic_mean(data):
    values = __memci_listed(data, 1, "harmonic_mean")
    if __memci_any(value < 0 for value in values):
        raise ValueError("harmonic_mean does not support negative values")
    if __memci_any(value == 0 for value in values):
        return 0
    return __memci_len(values) / __memci_math.fsum([1 / value for value in values])
def __memci_median(data):
    values = __memci_sorted(__memci_listed(data, 1, "median"))
    middle = __memci_len(values) // 2
    return values[middle] if __memci_len(values) % 2 else (values[middle - 1] + values[middle]) / 2
def __memci_median_low(data):
    values = __memci_sorted(__memci_listed(data, 1, "median_low"))
    return values[(__memci_len(values) - 1) // 2]
def __memci_median_high(data):
    values = __memci_sorted(__memci_listed(data, 1, "median_high"))
    return values[__memci_len(values) // 2]
def __memci_multimode(data):
    counts = {}
    for value in data:
        counts[value] = counts.get(value, 0) + 1
    most = __memci_max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]
def __memci_mode(data):
    values = __memci_multimode(data)
    if not values:
        raise ValueError("no mode for empty data")
    return values[0]
def __memci_squares(values, center):
    center = __memci_share(__memci_total(values), __memci_len(values)) if center is None else center
    return __memci_total([(value - center) ** 2 for value in values])
def __memci_variance(data, xbar=None):
    values = __memci_listed(data, 2, "variance")
    return __memci_share(__memci_squares(values, xbar), __memci_len(values) - 1)
def __memci_pvariance(data, mu=None):
    values = __memci_listed(data, 1, "pvariance")
    return __memci_share(__memci_squares(values, mu), __memci_len(values))
def __memci_stdev(data, xbar=None):
    values = __memci_listed(data, 2, "stdev")
    return __memci_math.sqrt(__memci_squares(values, xbar) / (__memci_len(values) - 1))
def __memci_pstdev(data, mu=None):
    values = __memci_listed(data, 1, "pstdev")
    return __memci_math.sqrt(__memci_squares(values, mu) / __memci_len(values))
def __memci_quantiles(data, *, n=4, method="exclusive"):
    if n < 1:
        raise ValueError("n must be at least 1")
    if method not in ("exclusive", "inclusive"):
        raise ValueError("Unknown method: " + __memci_repr(method))
    values = __memci_sorted(__memci_listed(data, 2, "quantiles"))
    last = __memci_len(values) - 1 if method == "inclusive" else __memci_len(values) + 1
    cuts = []
    for place in __memci_range(1, n):
        at = place * last // n
        if method == "exclusive":
            at = __memci_min(__memci_max(at, 1), __memci_len(values) - 1)
        rest = place * last - at * n
        low = at if method == "inclusive" else at - 1
        cuts.append((values[low] * (n - rest) + values[low + 1] * rest) / n)
    return cuts
def __memci_covariance(x, y):
    first, second = __memci_list(x), __memci_list(y)
    if __memci_len(first) != __memci_len(second) or __memci_len(first) < 2:
        raise ValueError("covariance requires two lists of the same length, of at least two data points")
    a, b = __memci_math.fsum(first) / __memci_len(first), __memci_math.fsum(second) / __memci_len(second)
    return __memci_math.fsum([(left - a) * (right - b) for left, right in __memci_zip(first, second)]) / (__memci_len(first) - 1)
def __memci_correlation(x, y):
    first, second = __memci_list(x), __memci_list(y)
    shared = __memci_covariance(first, second)
    spread = __memci_stdev(first) * __memci_stdev(second)
    if not spread:
        raise ValueError("at least one of the inputs is constant")
    return shared / spread
class statistics:
    StatisticsError = ValueError
    mean = __memci_mean
    fmean = __memci_fmean
    geometric_mean = __memci_geometric_mean
    harmonic_mean = __memci_harmonic_mean
    median = __memci_median
    median_low = __memci_median_low
    median_high = __memci_median_high
    mode = __memci_mode
    multimode = __memci_multimode
    variance = __memci_variance
    pvariance = __memci_pvariance
    stdev = __memci_stdev
    pstdev = __memci_pstdev
    quantiles = __memci_quantiles
    covariance = __memci_covariance
    correlation = __memci_correlation
"""
