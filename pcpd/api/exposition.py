"""Numbers as text that Prometheus reads: format 0.0.4, as its documentation describes it.

The library would bring a registry, collectors and a thread lock for what is a page of text here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often something took at most so many seconds: `bounds` in rising order, one count more than bounds."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, what it tells, and its values by labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    values: Sequence[tuple[Labels, float | Histogram]]


def one(name: str, kind: Literal["counter", "gauge"], about: str, value: float) -> Family:
    """Gives a metric without labels."""
    return Family(name, kind, about, [({}, value)])


def text(families: Iterable[Family]) -> bytes:
    """Gives the page. Metrics without values are left out."""
    lines: list[str] = []
    for family in families:
        if not family.values:
            continue
        lines += [f"# HELP {family.name} {_escaped(family.about)}", f"# TYPE {family.name} {family.kind}"]
        for labels, value in family.values:
            if isinstance(value, Histogram):
                lines += _histogram(family.name, labels, value)
            else:
                lines.append(f"{family.name}{_labels(labels)} {_number(value)}")
    return "".join(f"{line}\n" for line in lines).encode()


def _histogram(name: str, labels: Labels, histogram: Histogram) -> Iterable[str]:
    """Gives the lines of one histogram, whose buckets count all that is below."""
    seen = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        seen += count
        yield f"{name}_bucket{_labels({**labels, 'le': _number(bound)})} {seen}"
    yield f"{name}_sum{_labels(labels)} {_number(histogram.total)}"
    yield f"{name}_count{_labels(labels)} {seen}"


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(value, quote=True)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str, *, quote: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quote else escaped


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
