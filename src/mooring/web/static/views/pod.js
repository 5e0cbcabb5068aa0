// A pod's page: what became of it, how far it came, what would help, every node's verdict, and its story.
import { useRef, useState } from "preact-hooks";
import { isReport, post, useAnswer } from "mooring/api";
import { html } from "mooring/html";
import { JobProgress } from "mooring/jobs";
import { Lifeline } from "mooring/lifeline";
import { MatrixTable } from "mooring/matrix";
import { PodDevices } from "mooring/devices";
import { Few, Problems, State } from "mooring/parts";
import { Picture } from "mooring/picture";
import { go, link, linkTo, linkWith, podLink } from "mooring/route";
import { useWork } from "mooring/session";
import { amount, clock, count, resourceName } from "mooring/words";

export function PodView({ cluster, run, podKey, attempt, endSeconds }) {
  const asked = attempt ? `&attempt=${encodeURIComponent(attempt)}` : "";
  const { value, error } = useAnswer(`api/runs/${run.id}/pod?key=${encodeURIComponent(podKey)}${asked}`);
  // Until another attempt is there, the last one stays, so that the page keeps its place.
  const last = useRef(null);
  if (value) last.current = { run: run.id, page: value };
  const known = last.current?.run === run.id && last.current.page.pod === podKey && !error;
  const page = value ?? (known ? last.current.page : null);
  const index = cluster.indexOfPod(podKey);
  // What became of the pod in the end, whichever attempt is looked at.
  const state = index >= 0 && attempt ? cluster.podState(index) : page?.state;
  return html`<article class="pod-view" aria-busy=${page && !value ? "true" : "false"}>
    <header class="title">
      <p class="crumbs"><a href=${link("map")}>Map</a> / <a href=${link("pending")}>Pending</a> /</p>
      <h1>${podKey}</h1>
      ${page && html`<${State} state=${state} />`}
      ${page?.node && !attempt && html`<p>${WHERE[page.state] ?? "on"} <a href=${link("map", page.node)}>${page.node}</a></p>`}
      ${page?.sentences.length > 0 && html`<ul class="sentences">${page.sentences.map((each) => html`<li>${each}</li>`)}</ul>`}
    </header>
    <${Problems} error=${error} />
    ${!page && !error && html`<p class="loading" role="status">Asking the scheduler …</p>`}
    ${page && html`<${Preemption} preemption=${page.preemption} />`}
    ${index >= 0 && html`<${PodFacts} cluster=${cluster} pod=${index} podKey=${podKey} />`}
    ${page && html`<${Attempts} page=${page} podKey=${podKey} asked=${attempt} />`}
    ${page?.message && html`<p class="reason">${page.message}</p>`}
    ${
      page &&
      html`
      <${Picture} points=${page.points} key=${`${podKey} ${attempt}`} />
      ${page.counterfactuals && html`<${Counterfactuals} key=${`${run.id} ${podKey}`} run=${run} podKey=${podKey} />`}
      <${Refusals} page=${page} />
      <${PodDevices} devices=${page.devices} />
      ${page.matrix && page.matrix.nodes.length > 0 && html`<${MatrixTable} cluster=${cluster} page=${page} key=${`m ${podKey}`} />`}
      <${Lifeline} timeline=${page.timeline} endSeconds=${endSeconds} attempts=${page.attempts.length} />
    `
    }
  </article>`;
}

// How a pod's node is called, where the pod is not on it.
const WHERE = { finished: "was on", preempted: "was on", deleted: "was on", schedulable: "would go to", waiting: "holds a place on" };

// Both sides of a preemption: the pods that were evicted for this pod, and the pod that it was evicted for.
function Preemption({ preemption }) {
  const { victims, by, why } = preemption;
  if (!victims.length && !by) return null;
  return html`<section class="preemption box" aria-label="Preemption">
    ${
      by &&
      html`<p>Evicted from <a href=${link("map", by.node)}>${by.node}</a> at ${clock(by.atSeconds)}${
        by.pod && html` for <a href=${podLink(by.pod)}>${by.pod}</a> (priority ${by.priority})`
      }${by.why && `: ${by.why}`}.</p>`
    }
    ${
      victims.length > 0 &&
      html`<p>${count(victims.length, "pod was", "pods were")} evicted for it${why && ` (${why})`}:</p>
      <ul>${victims.map(
        (each) => html`<li><a href=${podLink(each.pod)}>${each.pod}</a> (priority ${each.priority}) from ${" "}
        <a href=${link("map", each.node)}>${each.node}</a> at ${clock(each.atSeconds)}</li>`,
      )}</ul>`
    }
  </section>`;
}

const OUTCOMES = {
  bound: "bound",
  waiting: "waiting",
  preempted: "made room",
  rejected: "given up",
  failed: "no node",
};
const MOST_ATTEMPTS = 12;

// Every search for a node that the journal holds; each is shown on the cluster of its moment.
function Attempts({ page, podKey, asked }) {
  const { attempts } = page;
  const [all, setAll] = useState(false);
  if (!attempts.length) return null;
  const ended = page.attempt === null && !asked;
  const shown = all ? attempts : attempts.slice(-MOST_ATTEMPTS);
  const address = (number) => linkWith({ attempt: number }, "pod", ...podKey.split("/"));
  if (attempts.length === 1 && !ended && !asked) return null;
  return html`<nav class="attempts" aria-label="Attempts"><h2>Attempts</h2><ol>
    ${shown.length < attempts.length && html`<li><button type="button" class="small" onClick=${() => setAll(true)}>${attempts.length - shown.length} earlier</button></li>`}
    ${shown.map(
      (each) => html`<li><a class="button" href=${address(each.number)}
      aria-current=${page.attempt === each.number ? "true" : undefined} title=${each.message}>
      <strong>${each.number}</strong> ${clock(each.atSeconds)} · ${each.outcome === "bound" || each.outcome === "waiting" ? `${OUTCOMES[each.outcome]}, ${each.node}` : OUTCOMES[each.outcome]}</a></li>`,
    )}
    ${
      (page.attempt === null || asked) &&
      html`<li><a class="button" href=${address(null)} aria-current=${!asked ? "true" : undefined}>${attempts.some((each) => each.outcome === "bound") ? "as placed" : "at the end"}</a></li>`
    }
  </ol></nav>`;
}

function PodFacts({ cluster, pod, podKey }) {
  const workload = cluster.workloadOf(pod);
  const gang = cluster.gangOf(pod);
  const labels = cluster.podLabels(pod).map(([key, value]) => `${key}=${value}`);
  return html`<div class="pod-facts">
    <dl class="facts">
      ${cluster.resources.map((name, r) =>
        name === "pods" || !cluster.requestOf(pod, r)
          ? null
          : html`<div>
        <dt>${resourceName(name)}</dt><dd>${amount(name, cluster.requestOf(pod, r))}</dd></div>`,
      )}
      <div><dt>priority</dt><dd>${cluster.map.pods.priority[pod]}</dd></div>
      ${gang && html`<div><dt>gang</dt><dd><a href=${link("gang", ...gang.split("/"))}>${gang}</a></dd></div>`}
      ${workload && html`<div><dt>workload</dt><dd><a href=${link("workload", ...workload.split(" ").pop().split("/"))}>${workload}</a></dd></div>`}
    </dl>
    ${labels.length > 0 && html`<p class="chips"><${Few} items=${labels} /></p>`}
    ${
      !isReport &&
      html`<p class="actions"><a class="button"
      href=${link("whatif", "Pod", ...podKey.split("/"))}>Edit and try</a></p>`
    }
  </div>`;
}

function Refusals({ page }) {
  if (!page.refusals.length || !page.matrix) return null;
  const all = page.matrix.nodes.length;
  return html`<section class="refusals" aria-labelledby="refusals-title">
    <h2 id="refusals-title">Rejected by</h2>
    <ul>${page.refusals.map(
      (each) => html`<li>
      <span class="name">${each.plugin || "the scheduler"}</span>
      <span class="why">${each.reasons.join(", ") || "not considered"}${each.code === "UnschedulableAndUnresolvable" ? " (no eviction would help)" : ""}</span>
      <span class="bar" aria-hidden="true"><span style=${{ width: `${(each.count / all) * 100}%` }}></span></span>
      <span class="numbers">${count(each.count, "node")}</span></li>`,
    )}</ul>
  </section>`;
}

function Counterfactuals(props) {
  return isReport
    ? html`<${WrittenCounterfactuals} ...${props} />`
    : html`<${FoundCounterfactuals} ...${props} />`;
}

function WrittenCounterfactuals({ run, podKey }) {
  const { value } = useAnswer(`api/runs/${run.id}/counterfactuals?pod=${encodeURIComponent(podKey)}`);
  return (
    value &&
    html`<${WouldFitIf} found=${value} why="A report cannot run the scheduler; open the cluster with mooring ui." />`
  );
}

function FoundCounterfactuals({ run, podKey }) {
  const { id, job, value, error } = useWork(`api/runs/${run.id}/counterfactuals`, { pod: podKey });
  const [failed, setFailed] = useState(null);
  const [under, setUnder] = useState(false);
  const apply = (answer) => {
    setUnder(true);
    post("api/runs", { base: run.id, counterfactual: { job: id, answer } }).then(
      (made) => go(linkTo(made.run, "compare", String(run.id), String(made.run))),
      (refused) => {
        setUnder(false);
        setFailed(refused);
      },
    );
  };
  return html`<div>
    ${
      !value &&
      !error &&
      html`<section class="would"><h2>It would fit if you …</h2>
      ${job ? html`<${JobProgress} job=${job} />` : html`<p class="loading">Trying changes …</p>`}</section>`
    }
    <${Problems} error=${error ?? failed} />
    ${value && html`<${WouldFitIf} found=${value} onApply=${apply} busy=${under} />`}
  </div>`;
}

function WouldFitIf({ found, onApply, busy, why }) {
  return html`<section class="would" aria-labelledby="would-title">
    <h2 id="would-title">It would fit if you …</h2>
    ${found.note && html`<p>${found.note}</p>`}
    ${!found.answers.length && !found.note && html`<p>No single change or pair of changes was found.</p>`}
    <ol>${found.answers.map(
      (answer, i) => html`<li>
      <p><strong>${answer.text}</strong></p>
      <p class="quiet">It would go to ${answer.node}; ${count(answer.fittingNodes, "node")} would fit.</p>
      <button type="button" disabled=${!onApply || busy} title=${why}
        onClick=${() => onApply(i)}>Apply and run again</button>
    </li>`,
    )}</ol>
    ${why && found.answers.length > 0 && html`<p class="quiet">${why}</p>`}
    ${!found.complete && html`<p class="quiet">The search ran out of time, so there may be more.</p>`}
  </section>`;
}
