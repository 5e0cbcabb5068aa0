// One small plot over virtual time: a line at the moment that is looked at, a crosshair over all plots at once with
// their values, a click goes to a moment, a drag zooms in on all plots and a double click shows all again.
import { useEffect, useLayoutEffect, useRef, useState } from "preact-hooks";
import uPlot from "uplot";
import { html } from "mooring/html";
import { clock } from "mooring/words";

const HEIGHT = 132;
const TOGETHER = "mooring";
// Steps of time that people count in.
const SECONDS = [
  0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
  43200, 86400, 172800, 604800, 1209600, 2592000, 7776000,
];
const WHOLE = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

// series: [{label, values, colour}]; xs ascending; `at` where the line stands; `now`: the values there, if they are
// known better than from the series; `onGo(x)`; `say(value)` in words; `shares`: values are parts of 1.
export function Plot({ title, say, now = null, xs, series, at, bySeconds, format, palette, onGo, shares }) {
  const box = useRef(null);
  const plot = useRef(null);
  const latest = useRef({});
  const [under, setUnder] = useState(null);
  latest.current = { at, onGo, setUnder };
  useLayoutEffect(() => {
    const element = box.current;
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    const make = () => {
      const options = optionsOf({ element, xs, series, format, palette, bySeconds, shares, latest });
      plot.current = new uPlot(options, [xs, ...series.map((each) => each.values)], element);
      element.plot = plot.current;
      watch.observe(element);
    };
    // The view is seen before its plots are drawn, which takes as long as all the rest of it.
    const isFirst = !element.plot;
    const stop = isFirst ? afterPaint(make) : make();
    return () => {
      stop?.();
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [xs, series, palette, bySeconds]);
  useEffect(() => {
    plot.current?.redraw(false, false);
  }, [at]);
  // `under`: where the crosshair stands, which is the same for all plots.
  const sampled = series.map(({ values }) => values[lastBy(xs, under ?? at)]);
  const shown = (under === null && now) || sampled;
  const text = shown.map((value, i) => `${series.length > 1 ? `${series[i].label} ` : ""}${say(value)}`).join(" · ");
  const when = under === null ? "" : `at ${bySeconds ? clock(under) : `change ${Math.floor(under).toLocaleString("en")}`}: `;
  return html`<figure class="plot">
    <figcaption><strong>${title}</strong> <span class="quiet now">${when}${text}</span>
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

function afterPaint(act) {
  let wait = 0;
  const frame = requestAnimationFrame(() => {
    wait = setTimeout(act);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(wait);
  };
}

// A value holds until the next one.
function lastBy(xs, at) {
  let [low, high] = [0, xs.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

function optionsOf({ element, xs, series, format, palette, bySeconds, shares, latest }) {
  const axis = {
    stroke: palette.quiet,
    grid: { stroke: palette.line, width: 0.5 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  let down = null;
  const end = xs[xs.length - 1];
  const most = series.reduce((sum, { values }) => values.reduce((a, b) => Math.max(a, b ?? 0), sum), 0);
  return {
    width: element.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    cursor: {
      // A value may begin far from the crosshair, so no point tells where it was measured.
      points: { show: false },
      drag: { x: true, y: false, dist: 5 },
      y: false,
      sync: { key: TOGETHER, setSeries: false, scales: ["x", null] },
    },
    scales: {
      // A little room after the last value, so that nothing hides it.
      x: { time: false, range: (u, low, high) => [low, high + (high >= end ? (high - low) * 0.02 : 0)] },
      // Of all values: those that are shown may have begun before what is zoomed to.
      y: { range: [0, shares ? topOf(most) : Math.max(1, most * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 64,
        incrs: bySeconds ? SECONDS : WHOLE,
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
        // A value between two gaps is a point; the last value ends the line.
        points: { show: (u, s, from, to, gaps) => Boolean(gaps?.length), size: 4 },
        spanGaps: false,
        paths: uPlot.paths.stepped({ align: 1 }),
      })),
    ],
    hooks: {
      // Beneath the lines.
      drawAxes: [(u) => drawLine(u, latest.current.at, palette)],
      drawSeries: [(u, i) => drawLast(u, i)],
      setCursor: [(u) => latest.current.setUnder(u.cursor.left >= 0 ? within(u.posToVal(u.cursor.left, "x"), end) : null)],
      ready: [
        (u) => {
          u.over.addEventListener("pointerdown", (event) => {
            down = event.offsetX;
          });
          u.over.addEventListener("click", (event) => {
            if (Math.abs(event.offsetX - down) < 5) latest.current.onGo(u.posToVal(event.offsetX, "x"));
          });
        },
      ],
    },
  };
}

function within(x, end) {
  return Math.max(0, Math.min(end, x));
}

// All of it, unless that makes a flat line of everything.
function topOf(high) {
  if (!high) return 1;
  return [0.01, 0.02, 0.05, 0.1, 0.2].find((top) => high <= top) ?? 1;
}

// What the last value is can be seen after the line of the moment.
function drawLast(u, i) {
  const [xs, values] = [u.data[0], u.data[i]];
  const value = values[values.length - 1];
  if (value === null || value === undefined || u.scales.x.max <= xs[xs.length - 1]) return;
  const y = Math.round(u.valToPos(value, "y", true));
  u.ctx.save();
  u.ctx.strokeStyle = u.series[i].stroke(u, i);
  u.ctx.lineWidth = u.series[i].width * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(u.valToPos(xs[xs.length - 1], "x", true), y);
  u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
  u.ctx.stroke();
  u.ctx.restore();
}

function drawLine(u, at, palette) {
  const x = u.valToPos(at, "x", true);
  if (x < u.bbox.left - 1 || x > u.bbox.left + u.bbox.width + 1) return;
  u.ctx.save();
  u.ctx.setLineDash([]);
  u.ctx.strokeStyle = palette.select;
  u.ctx.lineWidth = 1.5 * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}
