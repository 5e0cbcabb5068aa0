"""Plots as SVG: lines and bars on logarithmic axes, which is all that the benchmarks need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_COLOURS = ("#1f5fa8", "#c2571a", "#2c8a57", "#8a3fa0", "#7a6a1a", "#555555")
_INK = "#222222"
_FAINT = "#dddddd"
_FONT = 'font-family="sans-serif" font-size="12"'

_WIDTH = 720
_LINES_HEIGHT = 380
_LEFT = 70
_RIGHT = 190
_TOP = 46
_BOTTOM = 48

_BAR_LEFT = 180
_BAR_RIGHT = 40
_ROW_HEIGHT = 26


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its extremes, and values to compare it with by their names."""

    name: str
    value: float
    low: float
    high: float
    marks: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LogAxis:
    """From values to places, equal factors being equal distances."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        span = math.log(self.high / self.low)
        return self.start + (self.end - self.start) * math.log(value / self.low) / span

    def ticks(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (step * 10.0**power for power in range(first, last + 1) for step in (1, 2, 5))
        return [tick for tick in steps if self.low * 0.999 <= tick <= self.high * 1.001]


def lines(
    title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """A line for each series of (x, y); all values are positive."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    x_axis = LogAxis(min(xs), max(*xs, min(xs) * 1.01), _LEFT, _WIDTH - _RIGHT)
    y_axis = LogAxis(_below(min(ys)), _above(max(ys)), _LINES_HEIGHT - _BOTTOM, _TOP)
    parts = [_text(_LEFT, 24, title, bold=True)]
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        parts.append(_line(x_axis.start, y, x_axis.end, y, _FAINT))
        parts.append(_text(_LEFT - 8, y + 4, _number(tick), anchor="end"))
    for tick in x_axis.ticks():
        x = x_axis.at(tick)
        parts.append(_line(x, y_axis.start, x, y_axis.start + 5, _INK))
        parts.append(_text(x, y_axis.start + 19, _number(tick), anchor="middle"))
    parts.append(_line(x_axis.start, y_axis.start, x_axis.end, y_axis.start, _INK))
    middle = (x_axis.start + x_axis.end) / 2
    parts.append(_text(middle, _LINES_HEIGHT - 10, x_name, anchor="middle"))
    parts.append(_text(_LEFT, _TOP - 8, y_name))
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = _TOP + 14 + 20 * number
        parts.append(_line(x_axis.end + 16, y - 4, x_axis.end + 36, y - 4, colour, width=2))
        parts.append(_text(x_axis.end + 42, y, name))
    return _document(_LINES_HEIGHT, parts)


def bars(title: str, x_name: str, rows: Sequence[Bar]) -> str:
    """A bar for each row, its extremes as a line through its end, marks as coloured strokes."""
    height = _TOP + 24 + _ROW_HEIGHT * len(rows) + _BOTTOM
    values = [v for row in rows for v in (row.low, row.high, *row.marks.values())]
    axis = LogAxis(_below(min(values)), _above(max(values)), _BAR_LEFT, _WIDTH - _BAR_RIGHT)
    bottom = height - _BOTTOM
    parts = [_text(16, 24, title, bold=True)]
    for tick in axis.ticks():
        x = axis.at(tick)
        parts.append(_line(x, _TOP + 20, x, bottom, _FAINT))
        if f"{tick:e}"[0] in "15":
            parts.append(_text(x, bottom + 17, _number(tick), anchor="middle"))
    parts.append(_text((axis.start + axis.end) / 2, height - 10, x_name, anchor="middle"))
    marks = {name: None for row in rows for name in row.marks}
    colours = dict(zip(marks, _COLOURS[1:], strict=False))
    for number, (name, colour) in enumerate(colours.items()):
        x = _BAR_LEFT + 180 * number
        parts.append(_line(x, _TOP - 8, x, _TOP + 6, colour, width=3))
        parts.append(_text(x + 8, _TOP + 4, name))
    for number, row in enumerate(rows):
        y = _TOP + 24 + _ROW_HEIGHT * number
        middle = y + _ROW_HEIGHT / 2
        parts.append(_text(_BAR_LEFT - 8, middle + 4, row.name, anchor="end"))
        parts.append(
            f'<rect x="{axis.start:.1f}" y="{y + 5:.1f}" width="{axis.at(row.value) - axis.start:.1f}"'
            f' height="{_ROW_HEIGHT - 10}" fill="{_COLOURS[0]}" fill-opacity="0.75"/>'
        )
        parts.append(_line(axis.at(row.low), middle, axis.at(row.high), middle, _INK))
        for name, value in row.marks.items():
            x = axis.at(value)
            parts.append(_line(x, y + 2, x, y + _ROW_HEIGHT - 2, colours[name], width=3))
    return _document(height, parts)


def _below(value: float) -> float:
    """The next power of ten, or half of one, below a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return power * 5 if value > power * 5 else power


def _above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return power * 5 if value < power * 5 else power * 10


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}" {_FONT}{weight}>'
        f"{escape(text)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: int = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"'
        f' stroke-width="{width}"/>'
    )


def _document(height: float, parts: Sequence[str]) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    body = "\n".join([background, *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{body}\n</svg>\n'
