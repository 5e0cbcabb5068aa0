"""Plots over time as SVG: a few panels, one below the other, each with its own scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

_WIDTH, _PANEL_HEIGHT = 960, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 34, 26
COLOURS = ("#0969da", "#bf3989", "#1a7f37", "#9a6700", "#8250df", "#cf222e", "#57606a")
_DAY_S, _HOUR_S, _MINUTE_S = 86_400.0, 3_600.0, 60.0
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    #: One per moment; None is a gap.
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    lines: Sequence[Line]
    #: Shown as percent, on a scale that ends at 1.
    shares: bool = False


def plot(title: str, times_s: Sequence[float], panels: Sequence[Panel]) -> str:
    """A whole SVG file."""
    height = _TOP + len(panels) * (_PANEL_HEIGHT + _TOP + _BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="16" font-weight="600">{escape(title)}</text>',
    ]
    for i, panel in enumerate(panels):
        top = 2 * _TOP + i * (_PANEL_HEIGHT + _TOP + _BOTTOM)
        parts += _panel(panel, times_s, top)
    return "\n".join((*parts, "</svg>")) + "\n"


def _panel(panel: Panel, times_s: Sequence[float], top: int) -> Iterable[str]:
    highest = max((v for line in panel.lines for v in line.values if v is not None), default=0.0)
    step = 0.25 if panel.shares and highest <= 1 else step_of(highest)
    most = max(step * ceil(highest / step), step)
    end_s = max(times_s, default=0.0) or 1.0
    unit_s, unit = _time_unit(end_s)
    right = _WIDTH - _RIGHT

    def x(at_s: float) -> float:
        return _LEFT + (right - _LEFT) * at_s / end_s

    def y(value: float) -> float:
        return top + _PANEL_HEIGHT * (1 - value / most)

    yield f'<text x="{_LEFT}" y="{top - 8}" font-weight="600">{escape(panel.title)}</text>'
    for i in range(round(most / step) + 1):
        value = i * step
        text = f"{100 * value:.0f}%" if panel.shares else f"{value:,.10g}"
        yield (
            f'<line x1="{_LEFT}" x2="{right}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
            ' stroke="#d0d7de"/>'
        )
        yield f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>'
    time_step = step_of(end_s / unit_s)
    for i in range(floor(end_s / unit_s / time_step) + 1):
        at = i * time_step
        yield (
            f'<text x="{x(at * unit_s):.1f}" y="{top + _PANEL_HEIGHT + 18}"'
            f' text-anchor="middle">{at:,.10g} {unit}</text>'
        )
    for i, line in enumerate(panel.lines):
        colour = COLOURS[i % len(COLOURS)]
        for points in _pieces(times_s, line.values):
            path = " ".join(f"{x(at_s):.1f},{y(value):.1f}" for at_s, value in points)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield (
            f'<text x="{right + 12}" y="{top + 12 + 16 * i}" fill="{colour}">'
            f"{escape(line.name)}</text>"
        )


def _pieces(
    times_s: Sequence[float], values: Sequence[float | None]
) -> Iterable[list[tuple[float, float]]]:
    """The parts of the line between gaps."""
    piece: list[tuple[float, float]] = []
    for at_s, value in zip(times_s, values, strict=True):
        if value is not None:
            piece.append((at_s, value))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def step_of(highest: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five steps reach the highest value."""
    if highest <= 0:
        return 1.0
    size = 10.0 ** floor(log10(highest / _TICKS))
    return next(size * n for n in (1, 2, 5, 10) if size * n * _TICKS >= highest * 0.999)


def _time_unit(end_s: float) -> tuple[float, str]:
    for size, name in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if end_s >= 2 * size:
            return size, name
    return 1.0, "s"
