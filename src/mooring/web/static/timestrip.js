// The slider over virtual time, with what it stands at.
import { useMemo } from "preact-hooks";
import { html } from "mooring/html";
import { END, momentAt, positionOf } from "mooring/moment";
import { clock, count } from "mooring/words";

const TICKS = 1000;
// Of a time such as `136d 19h`.
const TIME_LETTERS = 9;

export function TimeStrip({ moments }) {
  const { time, reel, playing, hasTime, bySeconds, step, steps } = moments;
  if (!time || !reel || !steps) {
    if (moments.underWay) return html`<div class="strip quiet">The slider over time is there when the simulation is done.</div>`;
    return html`<div class="strip quiet">${time ? "No pod was placed or moved in this run." : "Loading the timeline …"}</div>`;
  }
  const value = Math.round(positionOf(moments) * TICKS);
  const slide = (event) => moments.go(momentAt(moments, Number(event.currentTarget.value) / TICKS));
  const goTo = (to) => moments.go(to >= steps ? END : { step: Math.max(0, to), seconds: null });
  const after = (some) => `after ${count(some, "change")} of ${steps.toLocaleString("en")}`;
  const where = step === null ? "at the end" : after(step);
  // Room for the longest text, so that the slider does not change under the hand that moves it.
  const room = { "--letters": after(steps).length + TIME_LETTERS };
  const text = `${clock(moments.seconds)} of virtual time, ${where}`;
  return html`<div class="strip" role="group" aria-label="Virtual time">
    <button type="button" class="round" aria-label=${playing ? "Pause" : "Play"}
      onClick=${playing ? moments.stop : moments.play}>
      ${playing ? "❚❚" : "▶"}</button>
    <button type="button" class="plain" aria-label="One change back" disabled=${step === 0}
      onClick=${() => goTo((step ?? steps) - 1)}>‹</button>
    <div class="slide">
      <${Marks} moments=${moments} />
      <input type="range" min="0" max=${TICKS} value=${value} aria-label="Moment" aria-valuetext=${text}
        onInput=${slide} />
    </div>
    <button type="button" class="plain" aria-label="One change forward" disabled=${step === null}
      onClick=${() => goTo(step + 1)}>›</button>
    <output class="moment" aria-live="off" style=${room}><strong>${clock(moments.seconds)}</strong> <span>${where}</span></output>
    ${
      hasTime &&
      html`<label class="field"><span>by</span>
      <select aria-label="Slide by" value=${bySeconds ? "time" : "change"}
        onChange=${(e) => moments.setBySeconds(e.currentTarget.value === "time")}>
        <option value="time">time</option><option value="change">change</option>
      </select></label>`
    }
  </div>`;
}

const KINDS = ["preempted", "failed"];
const BINS = 250;

// Where on the slider pods were preempted, and where attempts failed.
function Marks({ moments }) {
  const { time, reel, bySeconds } = moments;
  const marks = useMemo(() => marksOf(time.events, reel, bySeconds), [time, reel, bySeconds]);
  return html`<svg class="marks" viewBox=${`0 0 ${BINS} 8`} preserveAspectRatio="none" aria-hidden="true">
    ${marks.map(
      ([kind, bin]) => html`<rect class=${kind} x=${bin} y=${kind === "preempted" ? 0 : 4} width="1" height="4">
      <title>${kind}</title></rect>`,
    )}
  </svg>`;
}

function marksOf(events, reel, bySeconds) {
  const marks = [];
  for (const kind of KINDS) {
    const code = events.kinds.indexOf(kind);
    const bins = new Set();
    for (let i = 0; code >= 0 && i < events.kind.length; i += 1) {
      if (events.kind[i] !== code) continue;
      const part = bySeconds
        ? events.atSeconds[i] / (reel.time.endSeconds || 1)
        : events.step[i] / (reel.steps || 1);
      bins.add(Math.min(BINS - 1, Math.floor(part * BINS)));
    }
    for (const bin of bins) marks.push([kind, bin]);
  }
  return marks;
}
