// The slider over virtual time, with what it stands at.
import { html } from "mooring/html";
import { END, momentAt, positionOf } from "mooring/moment";
import { clock, count } from "mooring/words";

const TICKS = 1000;

export function TimeStrip({ moments }) {
  const { time, reel, playing, hasTime, bySeconds, step, steps } = moments;
  if (!time || !reel || !steps) {
    return html`<div class="strip quiet">${time ? "No pod was placed or moved in this run." : "Loading the timeline …"}</div>`;
  }
  const value = Math.round(positionOf(moments) * TICKS);
  const slide = (event) => moments.go(momentAt(moments, Number(event.currentTarget.value) / TICKS));
  const goTo = (to) => moments.go(to >= steps ? END : { step: Math.max(0, to), seconds: null });
  const where =
    step === null ? "at the end" : `after ${count(step, "change")} of ${steps.toLocaleString("en")}`;
  const text = `${clock(moments.seconds)} of virtual time, ${where}`;
  return html`<div class="strip" role="group" aria-label="Virtual time">
    <button type="button" class="round" aria-label=${playing ? "Pause" : "Play"}
      onClick=${playing ? moments.stop : moments.play}>
      ${playing ? "❚❚" : "▶"}</button>
    <button type="button" class="plain" aria-label="One change back" disabled=${step === 0}
      onClick=${() => goTo((step ?? steps) - 1)}>‹</button>
    <input type="range" min="0" max=${TICKS} value=${value} aria-label="Moment" aria-valuetext=${text}
      onInput=${slide} />
    <button type="button" class="plain" aria-label="One change forward" disabled=${step === null}
      onClick=${() => goTo(step + 1)}>›</button>
    <output class="moment" aria-live="off"><strong>${clock(moments.seconds)}</strong> <span>${where}</span></output>
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
