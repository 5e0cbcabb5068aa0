// The Scheduling Framework's picture: the extension points in order, lit as far as the pod came.
import { useState } from "preact-hooks";
import { html } from "mooring/html";

const LANES = [
  ["Queue", ["PreEnqueue", "QueueSort"]],
  ["Scheduling cycle", ["PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Permit"]],
  ["Binding cycle", ["PreBind", "Bind", "PostBind"]],
];

const SIGNS = { passed: "✓", rejected: "✕", helped: "↺", reached: "·", waiting: "◐", skipped: "»" };
const WORDS = {
  passed: "passed",
  rejected: "rejected",
  helped: "made room",
  reached: "reached",
  waiting: "waiting",
  skipped: "skipped",
};

export function Picture({ points }) {
  const byName = new Map(points.map((each) => [each.point, each]));
  const lit = points.filter((each) => each.outcome && each.text);
  const stops = (each) => each.outcome === "rejected" || each.outcome === "waiting";
  const happened = lit.filter((each) => each.outcome !== "skipped");
  const last = points.find(stops) ?? happened[happened.length - 1] ?? points[0];
  const [chosen, setChosen] = useState(null);
  const shown = byName.get(chosen) ?? last;
  return html`<section class="picture" aria-labelledby="picture-title">
    <h2 id="picture-title">Extension points</h2>
    ${points.some((each) => each.hypothetical) && html`<p class="quiet">Dashed: what would happen. The pod was not taken through these points.</p>`}
    <div class="lanes">
      ${LANES.map(
        ([lane, names]) => html`<div class="lane">
        <h3>${lane}</h3>
        <ol>${names
          .filter((name) => byName.has(name))
          .map(
            (name) =>
              html`<${Point} point=${byName.get(name)} chosen=${shown?.point === name}
                onChoose=${() => setChosen(name)} />`,
          )}</ol>
      </div>`,
      )}
    </div>
    ${
      shown &&
      html`<div class="point-detail">
      <p><strong>${shown.point}</strong> ${shown.hypothetical && html`<em>would be: </em>`}${shown.outcome === "skipped" && "skipped: "}
        ${shown.text || (shown.outcome ? "" : "The pod did not reach this point.")}</p>
      ${
        shown.plugins.length > 0 &&
        html`<p class="chips">${shown.plugins.map(
          (plugin) => html`<span
        class="chip">${plugin}</span> `,
        )}</p>`
      }
    </div>`
    }
  </section>`;
}

function Point({ point, chosen, onChoose }) {
  const { outcome, hypothetical } = point;
  const would = hypothetical ? "would be " : "";
  return html`<li class="point ${outcome ?? "dark"} ${hypothetical ? "would-be" : ""}" title=${outcome ? `${would}${WORDS[outcome]}` : "not reached"}>
    <button type="button" aria-pressed=${chosen ? "true" : "false"} onClick=${onChoose}>
      <span class="sign" aria-hidden="true">${SIGNS[outcome] ?? ""}</span>
      <span class="name">${point.point}</span>
      <span class="unseen">${outcome ? `${would}${WORDS[outcome]}` : "not reached"}</span>
      <span class="numbers">${point.plugins.length}<span class="unseen"> ${point.plugins.length === 1 ? "plugin" : "plugins"}</span></span>
    </button></li>`;
}
