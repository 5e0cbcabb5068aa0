// Small pieces that several views are made of.
import { useState } from "preact-hooks";
import { html } from "mooring/html";
import { linkTo } from "mooring/route";
import { amount, resourceName, share } from "mooring/words";

const OUTCOMES = {
  running: ["ok", "●"],
  placed: ["ok", "●"],
  schedulable: ["ok", "○"],
  finished: ["calm", "■"],
  waiting: ["warn", "◐"],
  queued: ["warn", "◔"],
  gated: ["warn", "▣"],
  unschedulable: ["bad", "▲"],
  ignored: ["calm", "–"],
  error: ["bad", "✕"],
  preempted: ["bad", "⤓"],
  deleted: ["calm", "–"],
  terminating: ["calm", "–"],
  bound: ["ok", "●"],
  pending: ["bad", "▲"],
  failed: ["bad", "▲"],
  rejected: ["bad", "▲"],
};

export function State({ state }) {
  const [kind, sign] = OUTCOMES[state] ?? ["calm", "·"];
  return html`<span class="state ${kind}"><span aria-hidden="true">${sign}</span> ${state}</span>`;
}

export function Meter({ label, value }) {
  const part = Math.max(0, Math.min(1, value ?? 0));
  return html`<span class="meter" role="img" aria-label=${`${label} ${share(value)}`}>
    <span style=${{ width: `${part * 100}%` }}></span></span>`;
}

export function Usage({ scene, node }) {
  const { cluster } = scene;
  return html`<dl class="usage">
    ${cluster.resources.map((name, r) => {
      const capacity = cluster.capacityOf(node, r);
      if (!capacity) return null;
      return html`<div>
        <dt title=${name}>${resourceName(name)}</dt>
        <dd><${Meter} label=${resourceName(name)} value=${scene.utilisation(node, r)} />
          <span class="numbers">${amount(name, scene.requested(r)[node])} / ${amount(name, capacity)}</span></dd>
      </div>`;
    })}
  </dl>`;
}

export function NoSuchRun() {
  return html`<div class="empty">
    <h1>No such run</h1>
    <p>It was deleted, or never existed. <a href=${linkTo(1, "map")}>Go to the first run</a></p>
  </div>`;
}

export function Problems({ error }) {
  if (!error) return null;
  const problems = (error.problems ?? []).filter((each) => each.line || each.path || each.text !== error.message);
  return html`<div class="problems" role="alert">
    <p>${error.message}</p>
    ${problems.length > 0 && html`<${ProblemList} problems=${problems} />`}
  </div>`;
}

export function ProblemList({ problems, onLine }) {
  return html`<ul class="problem-list">
    ${problems.map(
      (each) => html`<li>
      ${
        each.line &&
        (onLine
          ? html`<button type="button" class="text" onClick=${() => onLine(each.line)}>line ${each.line}</button> `
          : html`<span class="where">line ${each.line}</span> `)
      }
      ${each.path && html`<code>${each.path}</code>`} ${each.text}
    </li>`,
    )}
  </ul>`;
}

export function Choice({ label, value, options, onChange }) {
  return html`<label class="field"><span>${label}</span>
    <select aria-label=${label} value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select></label>`;
}

// Two or three ways to see the same thing.
export function Switch({ label, value, options, onChange }) {
  return html`<div class="switch" role="group" aria-label=${label}>
    ${options.map(
      ([key, text]) => html`<button type="button" aria-pressed=${key === value ? "true" : "false"}
      onClick=${() => onChange(key)}>${text}</button>`,
    )}
  </div>`;
}

// A long list of words, of which the first few are shown until asked for more.
export function Few({ items, most = 6 }) {
  const [all, setAll] = useState(false);
  const shown = all ? items : items.slice(0, most);
  return html`<span class="few">
    ${shown.map((item) => html`<span class="chip">${item}</span>`)}
    ${
      items.length > shown.length &&
      html`<button type="button" class="text" onClick=${() => setAll(true)}>
      and ${items.length - shown.length} more</button>`
    }
  </span>`;
}
