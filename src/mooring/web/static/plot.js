// One small plot over virtual time, with a line at the moment that is looked at; a click goes to a moment.
import { useEffect, useLayoutEffect, useRef } from "preact-hooks";
import uPlot from "uplot";
import { html } from "mooring/html";
import { clock } from "mooring/words";

const HEIGHT = 132;

// series: [{label, values, colour}]; xs ascending; `at` where the line stands; `onGo(x)`.
export function Plot({ title, summary, xs, series, at, bySeconds, format, palette, onGo, most }) {
  const box = useRef(null);
  const plot = useRef(null);
  const latest = useRef({});
  latest.current = { at, onGo };
  useLayoutEffect(() => {
    const element = box.current;
    const made = new uPlot(
      optionsOf({ element, series, format, palette, bySeconds, most, latest }),
      [xs, ...series.map((each) => each.values)],
      element,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [xs, series, palette, bySeconds]);
  useEffect(() => {
    plot.current?.redraw(false, false);
  }, [at]);
  return html`<figure class="plot">
    <figcaption><strong>${title}</strong> <span class="quiet">${summary}</span>
      <span class="keys">${
        series.length > 1 &&
        series.map(
          (each) => html`<span><span class="key"
        style=${{ background: each.colour }} aria-hidden="true"></span>${each.label}</span>`,
        )
      }</span>
    </figcaption>
    <div ref=${box} aria-hidden="true"></div>
  </figure>`;
}

function optionsOf({ element, series, format, palette, bySeconds, most, latest }) {
  const axis = {
    stroke: palette.quiet,
    grid: { stroke: palette.line, width: 0.5 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  return {
    width: element.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    cursor: { points: { show: false }, drag: { x: false, y: false }, y: false },
    scales: {
      x: { time: false },
      y: { range: (u, low, high) => [0, most ?? Math.max(1, high * 1.08 || 1)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        values: (u, splits) => splits.map((x) => (bySeconds ? clock(x) : x.toLocaleString("en"))),
      },
      { ...axis, size: 46, values: (u, splits) => splits.map(format), space: 26 },
    ],
    series: [
      {},
      ...series.map((each, i) => ({
        label: each.label,
        stroke: each.colour,
        width: 1.75,
        dash: i ? [[], [6, 3], [2, 2], [8, 3, 2, 3]][i % 4] : undefined,
        points: { show: false },
        spanGaps: true,
        paths: uPlot.paths.stepped({ align: 1 }),
      })),
    ],
    hooks: {
      draw: [(u) => drawLine(u, latest.current.at, palette)],
      ready: [
        (u) =>
          u.over.addEventListener("click", (event) => latest.current.onGo(u.posToVal(event.offsetX, "x"))),
      ],
    },
  };
}

function drawLine(u, at, palette) {
  const x = u.valToPos(at, "x", true);
  u.ctx.save();
  u.ctx.setLineDash([]);
  u.ctx.strokeStyle = palette.select;
  u.ctx.lineWidth = 2 * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}
