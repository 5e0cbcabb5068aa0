// The pods that have no node at this moment, folded by workload and reason, and what rejects them on how many nodes.
import { useMemo, useState } from "preact-hooks";
import { isReport, useAnswer } from "mooring/api";
import { html } from "mooring/html";
import { Problems, State, Switch } from "mooring/parts";
import { fateOf, groupsOf, rejectionsOf } from "mooring/pending";
import { link, linkWith, podLink, useQuery } from "mooring/route";
import { fieldIn, find, withField } from "mooring/search";
import { useWork } from "mooring/session";
import { Table } from "mooring/table";
import { TimeStrip } from "mooring/timestrip";
import { clock, count, share } from "mooring/words";

export function PendingView({ cluster, run, moments, scene, text, onText }) {
  const found = useMemo(() => find(scene, text), [scene, text]);
  const all = scene.pending();
  const rows = useMemo(() => (found ? all.filter((row) => found.pods[row.pod]) : all), [all, found]);
  const rejections = useMemo(() => rejectionsOf(all), [all]);
  const groups = useMemo(() => groupsOf(rows, cluster), [rows, cluster]);
  const [tab, setTab] = useQuery("tab", "causes", ["causes", "pods"]);
  return html`<div class="pending-view">
    <div class="title"><h1>Pending pods</h1>
      <p>${sentence(rows.length, all.length, cluster.podCount, moments)}</p>
      <${Switch} label="Show" value=${tab} onChange=${setTab} options=${[
        ["causes", "By cause"],
        ["pods", "Every pod"],
      ]} /></div>
    ${
      rejections.length > 0 &&
      html`<${Rejections} rejections=${rejections} text=${text} onText=${onText} />`
    }
    ${
      all.length > 0 &&
      (tab === "pods"
        ? html`<${Table} label="Pending pods" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.pod} sortIn="sort"
      empty="No pending pod matches." />`
        : html`<${Groups} groups=${groups} run=${run} cluster=${cluster} scene=${scene} underWay=${moments.underWay} />`)
    }
    <${TimeStrip} moments=${moments} />
  </div>`;
}

function sentence(shown, all, pods, moments) {
  const when = moments.underWay ? "so far" : moments.step === null ? "at the end" : `at ${clock(moments.seconds)}`;
  if (!pods) return "This cluster has no pods.";
  if (!all) return `No pod waits for a node ${when}.`;
  const of = shown === all ? "" : ` of ${all.toLocaleString("en")}`;
  return `${count(shown, "pod")}${of} without a node ${when}.`;
}

function Rejections({ rejections, text, onText }) {
  const chosen = fieldIn(text, "plugin");
  const part = ({ nodes, of }) => (of ? ` · ${share(nodes / of)} of nodes` : "");
  const choose = (plugin) =>
    onText(withField(text, "plugin", plugin.toLowerCase() === chosen ? "" : plugin));
  return html`<section class="holders" aria-labelledby="rejected-by"><h2 id="rejected-by">Rejected by</h2>
    ${rejections.slice(0, 8).map(
      ({ name, nodes, of, pods }) => html`<button type="button" class="holder"
        title=${of ? `${name} rejects ${nodes.toLocaleString("en")} of ${count(of, "node")}, summed over ${count(pods, "pod")}` : name}
        aria-pressed=${name.toLowerCase() === chosen ? "true" : "false"} onClick=${() => choose(name)}>
      <span class="name">${name}</span>
      <span class="bar" aria-hidden="true"><span style=${{ width: `${of ? (nodes / of) * 100 : 0}%` }}></span></span>
      <span class="numbers">${count(pods, "pod")}${part({ nodes, of })}</span></button>`,
    )}
  </section>`;
}

function Groups({ groups, run, cluster, scene, underWay }) {
  if (!groups.length) return html`<p class="nothing">No pending pod matches.</p>`;
  return html`<ol class="causes" aria-label="Pending pods by cause">
    ${groups.slice(0, 200).map((group) => html`<${Group} key=${group.id} group=${group} run=${run} cluster=${cluster} scene=${scene} underWay=${underWay} />`)}
    ${groups.length > 200 && html`<li class="quiet">and ${count(groups.length - 200, "more group")}: see “Every pod”, or filter.</li>`}
  </ol>`;
}

const HELPED = ["unschedulable", "gated"];

function Group({ group, run, cluster, scene, underWay }) {
  const [asked, setAsked] = useState(false);
  const { rows, cause, state, title, gang } = group;
  const [first] = rows;
  const since = rows.reduce((least, row) => Math.min(least, row.sinceSeconds), Infinity);
  const differ = !gang && rows.some((row) => row.cause.text !== cause.text);
  const atEnd = scene.step === null && !underWay;
  // Changes are tried on the cluster at the end.
  const helpable = !underWay && !gang && rows.find((row) => HELPED.includes(cluster.podState(row.pod)));
  return html`<li class="cause box">
    <div class="cause-head">
      <h2>${gang ? html`Gang <a href=${link("gang", ...title.split("/"))}>${title}</a>` : rows.length === 1 ? html`<a href=${podLink(first.key)}>${first.key}</a>` : title}
        ${rows.length > 1 && html` <span class="times">× ${rows.length.toLocaleString("en")}</span>`}</h2>
      <${State} state=${state} />
      ${
        first.attempts !== null &&
        html`<span class="quiet">since ${clock(since)}, ${count(rows.reduce((sum, row) => sum + row.attempts, 0), "attempt")}</span>`
      }
    </div>
    ${gang && html`<p class="cause-why">${gangSentence(gang, scene)}</p>`}
    <${Reasons} cause=${cause} message=${first.message} nominated=${first.nominated} />
    ${differ && html`<p class="quiet">These are the numbers of ${first.key}; those of the others differ.</p>`}
    ${
      rows.length > 1 &&
      html`<p class="cause-pods">${rows.slice(0, 6).map((row) => html`<a href=${podLink(row.key)}>${row.key}</a> `)}
      ${rows.length > 6 && html`<a href=${linkWith({ q: filterOf(group), tab: "pods" }, "pending")}>all ${rows.length.toLocaleString("en")}</a>`}
      ${gang && atEnd && html` · <code>mooring explain podgroup/${title}</code> tells what would make all of it fit`}
      ${group.workload && html` · <a href=${link("workload", ...title.split("/"))}>the workload</a>`}</p>`
    }
    ${helpable && !asked && html`<p><button type="button" class="small" onClick=${() => setAsked(true)}>What would help${atEnd ? "" : " at the end"}?</button></p>`}
    ${asked && helpable && html`<${Suggestion} run=${run} podKey=${helpable.key} atEnd=${atEnd} />`}
  </li>`;
}

function gangSentence(gang, scene) {
  const { placed, waiting } = fateOf(gang, scene);
  const needs = gang.minCount === null ? "" : `It needs ${count(gang.minCount, "pod")}`;
  const where = gang.topologyKey ? `${needs ? " " : "It must be "}within one ${gang.topologyKey}` : "";
  return `${needs}${where}${needs || where ? ": " : ""}${placed} of ${gang.pods.length} have a node, ${waiting} wait.`;
}

function filterOf({ workload, gang, title }) {
  if (gang) return `gang:${title}`;
  return workload ? `workload:${title}` : title;
}

function Reasons({ cause, message, nominated }) {
  if (!cause.reasons.length || !cause.of)
    return html`<p class="cause-why">${nominated && `Holds a place on ${nominated}: `}${message}</p>`;
  return html`<ul class="cause-reasons" title=${message}>
    ${nominated && html`<li><span>Holds a place on ${nominated}</span></li>`}
    ${cause.reasons.map(
      ([text, some, plugin]) => [text, some || cause.of, plugin]).map(
      ([text, nodes, plugin]) => html`<li>
      <span class="bar" aria-hidden="true"><span style=${{ width: `${(nodes / cause.of) * 100}%` }}></span></span>
      <span class="numbers">${nodes.toLocaleString("en")} of ${cause.of.toLocaleString("en")}</span>
      <span>${text}${plugin && html` <span class="quiet">${plugin}</span>`}</span></li>`,
    )}
  </ul>`;
}

// The smallest change for one pod; its page has the others.
function Suggestion(props) {
  return isReport ? html`<${Written} ...${props} />` : html`<${Searched} ...${props} />`;
}

function Written({ run, podKey, atEnd }) {
  const { value, error } = useAnswer(`api/runs/${run.id}/counterfactuals?pod=${encodeURIComponent(podKey)}`);
  if (error) return html`<p class="quiet">The report has no suggestion for this pod.</p>`;
  return value && html`<${Suggested} value=${value} podKey=${podKey} atEnd=${atEnd} />`;
}

function Searched({ run, podKey, atEnd }) {
  const { value, error } = useWork(`api/runs/${run.id}/counterfactuals`, { pod: podKey });
  if (error) return html`<${Problems} error=${error} />`;
  if (!value) return html`<p class="quiet" role="status">Trying changes …</p>`;
  return html`<${Suggested} value=${value} podKey=${podKey} atEnd=${atEnd} />`;
}

function Suggested({ value, podKey, atEnd }) {
  const [best] = value.answers;
  if (!best) return html`<p class="suggestion">${value.note || "No single change or pair of changes was found."}</p>`;
  return html`<p class="suggestion">${atEnd ? "It" : "At the end, it"} would fit if you <strong>${best.text}</strong>.
    ${" "}<a href=${podLink(podKey)}>${value.answers.length > 1 ? `${count(value.answers.length - 1, "other way", "other ways")}, and try it` : "Try it"}</a></p>`;
}

const COLUMNS = [
  {
    key: "pod",
    label: "Pod",
    sort: (row) => row.key,
    cell: (row) => html`<a href=${podLink(row.key)}>${row.key}</a>`,
  },
  {
    key: "state",
    label: "State",
    sort: (row) => row.state,
    cell: (row) => html`<${State} state=${row.state} />`,
  },
  {
    key: "plugins",
    label: "Rejected by",
    sort: (row) => row.plugins.join(", "),
    cell: (row) => row.plugins.join(", "),
  },
  {
    key: "message",
    label: "Reason",
    cell: (row) => html`<span title=${row.message}>${reasonOf(row)}</span>`,
  },
  {
    key: "attempts",
    label: "Tried",
    align: "number",
    downFirst: true,
    sort: (row) => row.attempts,
    cell: (row) => (row.attempts === null ? "–" : `${row.attempts}×`),
  },
  {
    key: "since",
    label: "Since",
    align: "number",
    sort: (row) => row.sinceSeconds,
    cell: (row) => (row.sinceSeconds === null ? "–" : clock(row.sinceSeconds)),
  },
];

function reasonOf(row) {
  const text = row.cause.of ? row.cause.text : row.message;
  return row.nominated ? `holds a place on ${row.nominated}. ${text}` : text;
}
