// A pod's story on a line: how long it was queued, backing off, waiting on Permit, and where it was bound.
import { useState } from "preact-hooks";
import { html } from "mooring/html";
import { link } from "mooring/route";
import { clock, count } from "mooring/words";

// What a pod is in after each kind of happening.
const AFTER = {
  queued: ["in the queue", "queue"],
  gated: ["held back before the queue", "gate"],
  ignored: ["ignored", "gate"],
  failed: ["unschedulable or backing off", "back"],
  nominated: ["waiting for victims to terminate", "hold"],
  waiting: ["waiting on Permit", "hold"],
  bound: ["bound", "bound"],
  preempted: ["preempted", "over"],
  terminating: ["terminating", "over"],
  finished: ["finished", "over"],
  deleted: ["gone", "over"],
};

const LEAST = 3;

export function Lifeline({ timeline, endSeconds, attempts }) {
  if (!timeline.length) return null;
  const parts = partsOf(timeline, endSeconds);
  return html`<section class="lifeline" aria-labelledby="life-title">
    <h2 id="life-title">Timeline</h2>
    <p>${count(attempts, "attempt")}, over ${clock(Math.max(endSeconds, 0))} of virtual time.</p>
    <div class="life" aria-hidden="true">
      ${parts.map(
        (part) => html`<span class="part ${part.kind}" style=${{ flexGrow: part.weight }}
        title=${`${part.text}, from ${clock(part.from)} for ${clock(part.to - part.from)}`}></span>`,
      )}
    </div>
    <div class="life-keys" aria-hidden="true">${keysOf(parts).map(
      ([kind, text]) => html`<span><span
      class="part ${kind}"></span> ${text}</span>`,
    )}</div>
    <${Happenings} timeline=${timeline} />
  </section>`;
}

// Of many alike in a row, the first and the last are shown until all are asked for.
function Happenings({ timeline }) {
  const [all, setAll] = useState(false);
  const shown = all ? timeline.map((each) => ({ each, between: 0 })) : shortened(timeline);
  return html`<ol class="happenings">
    ${shown.map(({ each, between }) =>
      between
        ? html`<li><span></span><span></span><button type="button" class="text"
          onClick=${() => setAll(true)}>${between} more in between</button></li>`
        : html`<li>
        <span class="numbers">${clock(each.atSeconds)}</span>
        <strong>${each.what}</strong>
        <span>${each.node && html`on <a href=${link("map", each.node)}>${each.node}</a> `}${each.message}</span>
      </li>`,
    )}
  </ol>`;
}

// Of a long story, the beginning and the end.
const MOST_SHOWN = 24;

function shortened(timeline) {
  const shown = folded(timeline);
  if (shown.length <= MOST_SHOWN) return shown;
  const left = shown.slice(MOST_SHOWN / 2, -MOST_SHOWN / 2);
  const between = left.reduce((sum, each) => sum + (each.between || 1), 0);
  return [...shown.slice(0, MOST_SHOWN / 2), { each: null, between }, ...shown.slice(-MOST_SHOWN / 2)];
}

function folded(timeline) {
  const shown = [];
  for (let i = 0; i < timeline.length;) {
    let end = i + 1;
    while (end < timeline.length && timeline[end].what === timeline[i].what) end += 1;
    const run = timeline.slice(i, end).map((each) => ({ each, between: 0 }));
    shown.push(
      ...(run.length > 3 ? [run[0], { each: null, between: run.length - 2 }, run[run.length - 1]] : run),
    );
    i = end;
  }
  return shown;
}

// Even what took no time at all can be seen.
function partsOf(timeline, endSeconds) {
  const moves = timeline.filter((each) => AFTER[each.what]);
  const whole = Math.max(endSeconds - (moves[0]?.atSeconds ?? 0), 1e-9);
  return moves.map((each, i) => {
    const [text, kind] = AFTER[each.what];
    const to = moves[i + 1]?.atSeconds ?? Math.max(endSeconds, each.atSeconds);
    return { text, kind, from: each.atSeconds, to, weight: LEAST + (100 * (to - each.atSeconds)) / whole };
  });
}

function keysOf(parts) {
  return [...new Map(parts.map((part) => [part.kind, part.text]))];
}
