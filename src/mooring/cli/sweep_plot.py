"""The figure of a sweep as SVG: a panel for each measure, with a mean and its spread for each configuration.

A dot is the mean over the seeds, the bar is one standard deviation to each side, and the thin line goes from
the least to the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from math import ceil, floor

from mooring.cli.plots import COLOURS, step_of
from mooring.sweep.measure_names import is_share
from mooring.sweep.statistics import Group, Statistic

_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 230, 34, 60
_PANEL_HEIGHT, _CONFIG_WIDTH, _LEAST_WIDTH = 220, 120, 480
#: From one series to the next, within a configuration.
_APART = 14


def plot_groups(title: str, groups: Sequence[Group], measures: Sequence[str]) -> str:
    """A whole SVG file."""
    configs = list(dict.fromkeys(group.config for group in groups))
    series = list(dict.fromkeys(_series(group) for group in groups))
    inner = max(_LEAST_WIDTH, _CONFIG_WIDTH * len(configs))
    width = _LEFT + inner + _RIGHT
    height = _TOP + max(len(measures), 1) * (_PANEL_HEIGHT + _TOP + _BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="16" font-weight="600">{escape(title)}</text>',
    ]
    for i, measure in enumerate(measures):
        top = 2 * _TOP + i * (_PANEL_HEIGHT + _TOP + _BOTTOM)
        parts += _panel(measure, groups, configs, series, top=top, inner=inner)
    return "\n".join((*parts, "</svg>")) + "\n"


def _series(group: Group) -> str:
    return group.input if group.load is None else f"{group.input}, load {group.load:g}"


def _panel(
    measure: str,
    groups: Sequence[Group],
    configs: Sequence[str],
    series: Sequence[str],
    *,
    top: int,
    inner: int,
) -> Iterator[str]:
    scale = 100.0 if is_share(measure) else 1.0
    found = [(group, s) for group in groups if (s := group.statistics.get(measure)) is not None]
    low, high, step = _limits([s for _, s in found], scale)

    def y(value: float) -> float:
        return top + _PANEL_HEIGHT * (1 - (scale * value - low) / (high - low))

    unit = ", %" if is_share(measure) else ""
    yield f'<text x="{_LEFT}" y="{top - 8}" font-weight="600">{escape(measure)}{unit}</text>'
    for i in range(round((high - low) / step) + 1):
        value = low + i * step
        yield (
            f'<line x1="{_LEFT}" x2="{_LEFT + inner}" y1="{y(value / scale):.1f}"'
            f' y2="{y(value / scale):.1f}" stroke="#d0d7de"/>'
        )
        yield (
            f'<text x="{_LEFT - 8}" y="{y(value / scale) + 4:.1f}" text-anchor="end">'
            f"{value:,.10g}</text>"
        )
    for i, config in enumerate(configs):
        yield (
            f'<text x="{_centre(i, len(configs), inner):.1f}" y="{top + _PANEL_HEIGHT + 20}"'
            f' text-anchor="middle">{escape(config)}</text>'
        )
    for group, each in found:
        number = series.index(_series(group))
        offset = _APART * (number - (len(series) - 1) / 2)
        x = _centre(configs.index(group.config), len(configs), inner) + offset
        yield from _mark(each, x, y, COLOURS[number % len(COLOURS)])
    for i, name in enumerate(series):
        yield (
            f'<text x="{_LEFT + inner + 12}" y="{top + 12 + 16 * i}"'
            f' fill="{COLOURS[i % len(COLOURS)]}">{escape(name)}</text>'
        )


def _centre(number: int, count: int, inner: int) -> float:
    return _LEFT + inner * (number + 0.5) / count


def _mark(each: Statistic, x: float, y: Callable[[float], float], colour: str) -> Iterator[str]:
    """The thin line, the bar, and the dot."""
    yield _upright(x, y(each.least), y(each.most), colour, 1)
    if each.deviation is not None:
        low, high = each.mean - each.deviation, each.mean + each.deviation
        yield _upright(x, y(low), y(high), colour, 5)
    yield f'<circle cx="{x:.1f}" cy="{y(each.mean):.1f}" r="4" fill="{colour}"/>'


def _upright(x: float, start: float, end: float, colour: str, width: int) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{start:.1f}" y2="{end:.1f}" stroke="{colour}"'
        f' stroke-width="{width}" stroke-opacity="0.6"/>'
    )


def _limits(found: Sequence[Statistic], scale: float) -> tuple[float, float, float]:
    """The ends of the axis and its step; the axis need not begin at 0, as policies differ by a little."""
    spreads = [each.deviation or 0.0 for each in found]
    lows = [min(s.least, s.mean - d) for s, d in zip(found, spreads, strict=True)]
    highs = [max(s.most, s.mean + d) for s, d in zip(found, spreads, strict=True)]
    low, high = scale * min(lows, default=0.0), scale * max(highs, default=1.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    step = step_of(high - low)
    return step * floor(low / step), step * ceil(high / step), step
