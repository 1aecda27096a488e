"""How each score is called, which way is better, and how many digits it deserves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from varclass.metrics.intervals import Interval


@dataclass(frozen=True)
class Measure:
    """A score: `better` is +1 where more is better, -1 where less is, 0 where neither is; `percent` for shares.

    It lies between `least` and `most`, though a t-interval over few seeds may not.
    """

    key: str
    name: str
    better: int = 0
    percent: bool = False
    digits: int = 3
    least: float = 0.0
    most: float | None = None  # None: 1 for shares, otherwise without end

    @property
    def heading(self) -> str:
        """Its name as a column's."""
        return f"{self.name} %" if self.percent else self.name

    def text(self, value: float) -> str:
        """A value with its unit.

        >>> MEASURES["nll"].text(0.0887), MEASURES["accuracy"].text(0.974), MEASURES["nll"].text(math.nan)
        ('.089', '97.4%', 'no data')
        """
        bare = self.bare(value)
        return f"{bare}%" if self.percent and math.isfinite(value) else bare

    def bare(self, value: float, digits: int | None = None) -> str:
        """A value without its unit, as a table has it."""
        if math.isnan(value):
            return "no data"
        if math.isinf(value):
            return "infinite" if value > 0 else "-infinite"
        if self.percent:
            return f"{100 * value + 0.0:.{1 if digits is None else digits}f}"
        return short(value, (self.digits if abs(value) < 10 else 1) if digits is None else digits)

    def change(self, value: float) -> str:
        """A difference: shares in points, one digit finer than the value; never 0 unless it is.

        >>> MEASURES["ece"].change(0.0123), MEASURES["nll"].change(-0.015), MEASURES["nll"].change(3.2e-5)
        ('1.23', '-.015', '.00003')
        """
        text = self.bare(value, 2 if self.percent else None)
        if value and math.isfinite(value) and not text.strip("-.0"):
            shown = 100 * value if self.percent else value
            first = -math.floor(math.log10(abs(shown)))  # the first digit that is not 0
            return f"{shown:.1g}" if first > 6 else f"{shown:.{first}f}" if self.percent else short(shown, first)
        return text

    @property
    def unit(self) -> str:
        """What a difference is counted in."""
        return " points" if self.percent else ""

    def interval(self, found: Interval) -> str:
        """Mean and half the interval's width; the mean alone for one seed."""
        if math.isnan(found.high) or math.isnan(found.mean):
            return self.bare(found.mean)
        digits = 1 if self.percent else self.digits if abs(found.mean) < 10 else 1
        half = found.high - found.mean
        width = f"{half:.{digits}f}" if abs(found.mean) >= 1 and not self.percent else self.bare(half, digits)
        return f"{self.bare(found.mean, digits)} ± {width}"

    def ends(self, found: Interval, most: float | None = None) -> tuple[float, float]:
        """The interval's ends, cut to the possible values.

        >>> MEASURES["accuracy"].ends(Interval(0.328, -1.451, 2.107, 0.198, 2, 0.95))
        (0.0, 1.0)
        """
        limits = (most, self.most, 1.0 if self.percent else math.inf)
        return max(found.low, self.least), min(found.high, next(limit for limit in limits if limit is not None))

    def cut(self, found: Interval, most: float | None = None) -> str:
        r"""As `interval`, but where it holds impossible values its ends instead, without them.

        >>> MEASURES["nll"].cut(Interval(0.3, 0.2, 0.4, 0.01, 2, 0.95))
        '.300 ± .100'
        >>> MEASURES["nll"].cut(Interval(0.3, -1.0, 1.6, 0.1, 2, 0.95))
        '.300 (.000\xa0to\xa01.600)'
        """
        low, high = self.ends(found, most)
        if math.isnan(found.mean) or math.isnan(found.high) or (low, high) == (found.low, found.high):
            return self.interval(found)
        return f"{self.bare(found.mean)} ({self.bare(low)}\xa0to\xa0{self.bare(high)})"


def short(value: float, digits: int) -> str:
    """A number below 1 without its leading zero.

    >>> short(0.0741, 3), short(-0.5, 1), short(2.5, 2)
    ('.074', '-.5', '2.50')
    """
    text = f"{value + 0.0:.{digits}f}"
    if not text.strip("-0."):
        return text.lstrip("-").removeprefix("0") if digits else "0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


MEASURES = {
    measure.key: measure
    for measure in (
        Measure("accuracy", "accuracy", 1, True),
        Measure("nll", "NLL", -1),
        Measure("ece", "ECE", -1, True),
        Measure("ece_15", "ECE (15 bins)", -1, True),
        Measure("adaptive_ece", "adaptive ECE", -1, True),
        Measure("classwise_ece", "classwise ECE", -1, True),
        Measure("brier", "Brier", -1, most=2.0),
        Measure("aurc", "AURC", -1, digits=4, most=1.0),
        Measure("auroc", "AUROC", 1, True),
        Measure("aupr_in", "AUPR in", 1, True),
        Measure("aupr_out", "AUPR out", 1, True),
        Measure("fpr95", "FPR95", -1, True),
        Measure("coverage", "coverage", 0, True),
        Measure("size", "mean set size", -1),
        Measure("empty", "empty", 0, True),
        Measure("singleton", "singletons", 0, True),
        Measure("accuracy_trained", "accuracy, trained p(y)", 1, True),
        Measure("accuracy_true", "accuracy, true p(y)", 1, True),
        Measure("accuracy_estimated", "accuracy, estimated p(y)", 1, True),
        Measure("nll_trained", "NLL, trained p(y)", -1),
        Measure("nll_true", "NLL, true p(y)", -1),
        Measure("nll_estimated", "NLL, estimated p(y)", -1),
        Measure("mean_rms", "mean, RMS"),
        Measure("variance", "variance"),
        Measure("skewness_rms", "skewness, RMS"),
        Measure("kurtosis", "kurtosis", least=-math.inf),
        Measure("rejected", "dimensions rejected"),
        Measure("kl", "KL, nats"),
        Measure("entropy", "entropy, nats"),
        Measure("on_two", "p(y) on the two classes", 0, True),
        Measure("gain", "accuracy gain", 1, True, least=-1.0),
        Measure("slope", "accuracy gain per tenfold samples", 0, True, least=-math.inf, most=math.inf),
    )
}
