"""A comparison as one HTML file, without scripts and external files. Every name is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mooring.cli.comparison_tables import (
    measure_rows,
    score_plugins,
    side_line,
    summary,
    verdict,
)
from mooring.explain.compare import Comparison, Difference, Divergence, Regression

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color: #1b1f24; background: #fff }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; display: block; overflow-x: auto }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #d0d7de; text-align: left }
td + td, th + th { font-variant-numeric: tabular-nums }
.worse { color: #b42318; font-weight: 600 } .fine { color: #1a7f37; font-weight: 600 }
.taken { font-weight: 600 } .dim { color: #57606a }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 }
  th, td { border-color: #30363d } .dim { color: #8b949e } }
"""


def comparison_page(comparison: Comparison, worse: Sequence[Regression], *, checked: bool) -> str:
    baseline = comparison.runs[0].name
    body = [
        "<h1>Comparison</h1>",
        _paragraph(summary(comparison)),
        *(
            _paragraph(line, "worse" if worse else "fine")
            for line in verdict(worse, checked=checked)
        ),
        "<h2>Measures</h2>",
        _table(["", *(run.name for run in comparison.runs)], measure_rows(comparison)),
    ]
    for difference in comparison.differences:
        body += _difference(baseline, difference)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>mooring compare</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _difference(baseline: str, difference: Difference) -> Iterable[str]:
    yield f"<h2>Different with {escape(difference.variant)}</h2>"
    if not difference.moved:
        yield _paragraph("Every pod goes to the same node.")
        return
    yield _table(["pod", baseline, difference.variant], difference.moved)
    for divergence in difference.why:
        yield from _why(divergence)


def _why(divergence: Divergence) -> Iterable[str]:
    yield f"<h3>Why {escape(divergence.pod)}</h3>"
    if not divergence.same_state:
        yield _paragraph("Earlier decisions already differ, so the two clusters differ too.", "dim")
    for side in divergence.sides:
        yield _paragraph(side_line(side))
        if side.scores:
            plugins = score_plugins(side)
            yield _table(
                ["node", "total", *plugins],
                [
                    [each.node, each.total, *(each.by_plugin.get(p, 0) for p in plugins)]
                    for each in side.scores
                ],
                taken=side.node,
            )


def _table(
    columns: Iterable[str], rows: Iterable[Sequence[object]], *, taken: str | None = None
) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = []
    for row in rows:
        kind = ' class="taken"' if taken is not None and row[0] == taken else ""
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in row)
        lines.append(f"<tr{kind}>{cells}</tr>")
    return f"<table><tr>{head}</tr>\n" + "\n".join(lines) + "</table>"


def _paragraph(text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"
