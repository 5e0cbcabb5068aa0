// Before and after, side by side: what differs by numbers, workloads and pods, and why.
import { useMemo, useState } from "preact-hooks";
import { isReport } from "mooring/api";
import { html } from "mooring/html";
import { JobProgress } from "mooring/jobs";
import { ClusterMap } from "mooring/map";
import { useCluster, useEndScene } from "mooring/moment";
import { Choice, NoSuchRun, Problems } from "mooring/parts";
import { go, linkTo } from "mooring/route";
import { jobOf, runOf, useSession, useWork } from "mooring/session";
import { Table } from "mooring/table";
import { Legend, MapOptions, useMapOptions } from "mooring/views/map";
import { count, share } from "mooring/words";

export function CompareView({ beforeId, afterId }) {
  const { session } = useSession();
  const before = runOf(session, beforeId);
  const after = runOf(session, afterId);
  const ready = before?.state === "ready" && after?.state === "ready";
  const { job, value, error } = useWork(
    "api/compare",
    ready && !isReport ? { runs: [beforeId, afterId] } : null,
  );
  if (!before || !after) return html`<${NoSuchRun} />`;
  const stopped = [before, after].find((run) => run.state === "failed" || run.state === "cancelled");
  return html`<div class="compare-view">
    <div class="title"><h1>Before and after</h1></div>
    <${Pair} runs=${session.runs} before=${beforeId} after=${afterId} />
    ${
      after.changes.some((each) => each !== after.name) &&
      html`<ul class="changes"
      aria-label="What was changed">${after.changes.map((each) => html`<li>${each}</li>`)}</ul>`
    }
    ${stopped && html`<${Problems} error=${{ message: `${stopped.name}: ${stopped.state}`, problems: stopped.problems }} />`}
    ${
      !ready &&
      !stopped &&
      html`<div class="box" role="status">
      <p>Running “${after.name}” …</p><${JobProgress} job=${jobOf(session, after.job)} /></div>`
    }
    ${
      ready &&
      !value &&
      !error &&
      html`<div class="box" role="status">
      <p>Comparing …</p><${JobProgress} job=${job} /></div>`
    }
    <${Problems} error=${error} />
    ${value && html`<${Comparison} value=${value} before=${before} after=${after} />`}
  </div>`;
}

// Any two runs can be held against each other; one that is chosen for both sides changes them over.
function Pair({ runs, before, after }) {
  const options = runs.map((run) => [String(run.id), run.name]);
  const change = (first, second) => go(linkTo(second, "compare", String(first), String(second)));
  const first = (id) => (Number(id) === after ? change(after, before) : change(Number(id), after));
  const second = (id) => (Number(id) === before ? change(after, before) : change(before, Number(id)));
  return html`<div class="toolbar">
    <${Choice} label="Before" value=${String(before)} options=${options} onChange=${first} />
    <${Choice} label="After" value=${String(after)} options=${options} onChange=${second} />
  </div>`;
}

function Comparison({ value, before, after }) {
  const [difference] = value.differences;
  const moved = useMemo(() => new Set(difference.moved.map((each) => each.pod)), [difference]);
  return html`<div class="comparison">
    <${Verdict} value=${value} difference=${difference} />
    <${Sides} before=${before} after=${after} moved=${moved} />
    <div class="two"><${Values} value=${value} /><${Workloads} rows=${value.workloads} /></div>
    <${Moved} difference=${difference} before=${before} after=${after} />
    ${value.config && html`<${ConfigDifference} text=${value.config} />`}
    ${value.firstDifference && html`<${FirstDifference} pod=${value.firstDifference} runs=${value.runs} />`}
  </div>`;
}

function Verdict({ value, difference }) {
  // As everywhere on the page, pods of other schedulers count as pending; the numbers below tell them apart.
  const [was, is] = value.variants.map(({ values }) => values.pending + values.otherSchedulers);
  const sums = { better: 0, worse: 0, moved: 0, other: 0, evicted: 0 };
  for (const each of difference.moved) sums[isEvicted(each) ? "evicted" : each.change] += 1;
  const parts = [];
  if (sums.moved) parts.push(`${count(sums.moved, "pod")} moved`);
  if (sums.better) parts.push(`${count(sums.better, "pod")} newly placed`);
  if (sums.worse) parts.push(`${count(sums.worse, "pod")} newly pending`);
  if (sums.evicted) parts.push(`${count(sums.evicted, "pod")} evicted`);
  if (sums.other) parts.push(`${count(sums.other, "pod")} added, removed or gone otherwise`);
  const moved = parts.length ? parts.join(", ") : "Every pod is on the same node";
  const pending =
    is === was
      ? `the same number pending (${is.toLocaleString("en")})`
      : `${Math.abs(is - was).toLocaleString("en")} ${is < was ? "fewer" : "more"} pending (${was.toLocaleString("en")} before, ${is.toLocaleString("en")} after)`;
  return html`<p class="verdict">${moved}; ${pending}.</p>`;
}

// It had a node before, and is not even pending after.
function isEvicted(each) {
  return each.change === "worse" && each.variant !== "pending";
}

function Sides({ before, after, moved }) {
  const one = useCluster(before);
  const two = useCluster(after);
  const options = useMapOptions(one.cluster);
  if (!one.cluster || !two.cluster) return html`<p class="loading">Drawing …</p>`;
  return html`<section class="sides" aria-label="Maps before and after">
    <div class="toolbar"><${MapOptions} cluster=${one.cluster}
      options=${options} /><${Legend} cluster=${one.cluster} options=${options} /></div>
    <${Side} title="Before" run=${before} cluster=${one.cluster} beside=${two.cluster} options=${options} moved=${moved} />
    <${Side} title="After" run=${after} cluster=${two.cluster} beside=${one.cluster} options=${options} moved=${moved} />
  </section>`;
}

function Side({ title, run, cluster, beside, options, moved }) {
  const scene = useEndScene(cluster);
  const found = useMemo(() => litBy(cluster, moved), [cluster, moved]);
  return html`<div class="side"><h2 title=${run.name}>${title} <span class="quiet">${run.name}</span></h2>
    <${ClusterMap} label=${`Nodes ${title.toLowerCase()}`} scene=${scene} resource=${options.resource}
      groupKey=${options.groupKey} sizeBy=${options.sizeBy} colour=${options.colour} found=${found} beside=${beside}
      selected=${-1} onSelect=${() => {}}
      onOpenPod=${(pod) => go(linkTo(run.id, "pod", ...cluster.podKey(pod).split("/")))} /></div>`;
}

// The pods that moved are outlined; no node is dimmed for it.
function litBy(cluster, moved) {
  if (!moved.size) return null;
  const pods = new Uint8Array(cluster.podCount);
  for (const key of moved) {
    const pod = cluster.indexOfPod(key);
    if (pod >= 0) pods[pod] = 1;
  }
  return { nodes: new Uint8Array(cluster.nodeCount).fill(1), pods };
}

// Of these, less is better; of utilisation and placed pods, more is. The others are neither.
const LESS = /^(pending|preempted|fragmentation\.|imbalance\.|zoneSkew\.)/;
const MORE = /^placed$/;

function judged(key, was, is) {
  if (was === is || was === null || is === null) return "";
  if (LESS.test(key)) return is < was ? "better" : "worse";
  if (MORE.test(key)) return is > was ? "better" : "worse";
  return "";
}

function Values({ value }) {
  const [before, after] = value.variants;
  const rows = Object.keys(before.values)
    .filter((key) => key in after.values && !(before.values[key] === null && after.values[key] === null))
    .map((key) => ({ key, was: before.values[key], is: after.values[key] }));
  return html`<section aria-labelledby="values-title"><h2 id="values-title">In numbers</h2>
    <div class="rows short" role="region" aria-label="Numbers before and after" tabindex="0"><table>
      <thead><tr><th scope="col">Measure</th><th scope="col" class="number">Before</th><th scope="col"
        class="number">After</th><th scope="col" class="number">Change</th><th scope="col">Verdict</th></tr></thead>
      <tbody>${rows.map(
        ({ key, was, is }) => html`<tr class=${was === is ? "same" : ""}>
        <th scope="row">${value.labels?.[key] ?? key}</th>
        <td class="number">${spelled(key, was)}</td><td class="number">${spelled(key, is)}</td>
        <td class="number">${changeOf(key, was, is)}</td>
        <td><${Judged} how=${judged(key, was, is)} /></td></tr>`,
      )}</tbody>
    </table></div></section>`;
}

function Judged({ how }) {
  if (!how) return null;
  const good = how === "better";
  return html`<span class="state ${good ? "ok" : "bad"}"><span aria-hidden="true">${good ? "▲" : "▼"}</span> ${how}</span>`;
}

const SHARES = /^(utilisation|fragmentation|imbalance|nodeShare)\./;

function spelled(key, value) {
  if (value === null || value === undefined) return "–";
  if (SHARES.test(key)) return share(value);
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(2);
}

function changeOf(key, was, is) {
  if (was === is || was === null || is === null) return was === is ? "=" : "–";
  const sign = is > was ? "+" : "−";
  const by = Math.abs(is - was);
  if (SHARES.test(key)) return `${sign}${by < 0.0005 ? "<0.1" : (by * 100).toFixed(1)} points`;
  return `${sign}${Number.isInteger(by) ? by.toLocaleString("en") : by.toFixed(2)}`;
}

const NUMBERS = ["worse", "better", "moved", "other"];
const WORKLOAD_COLUMNS = [
  { key: "workload", label: "Workload", sort: (row) => row.workload, cell: (row) => row.workload },
  ...NUMBERS.map((key) => ({
    key,
    label: { worse: "Newly pending or evicted", better: "Newly placed", moved: "Moved", other: "Other" }[key],
    align: "number",
    downFirst: true,
    sort: (row) => row[key],
    cell: (row) => (row[key] ? html`<span class=${{ worse: "state bad", better: "state ok" }[key] ?? ""}>${row[key].toLocaleString("en")}</span>` : "–"),
  })),
];

function Workloads({ rows }) {
  return html`<section aria-labelledby="workloads-title"><h2 id="workloads-title">By workload</h2>
    <${Table} label="Workloads that changed" columns=${WORKLOAD_COLUMNS} rows=${rows} rowKey=${(row) => row.workload}
      empty="No workload changed." /></section>`;
}

const CHANGES = [
  ["", "all"],
  ["moved", "Moved"],
  ["worse", "Newly pending or evicted"],
  ["better", "Newly placed"],
  ["other", "Other"],
];

function Moved({ difference, before, after }) {
  const [change, setChange] = useState("");
  const rows = useMemo(
    () => (change ? difference.moved.filter((row) => row.change === change) : difference.moved),
    [difference, change],
  );
  const columns = useMemo(
    () => [
      {
        key: "pod",
        label: "Pod",
        sort: (row) => row.pod,
        cell: (row) => html`<a href=${linkTo(row.variant === "-" ? before.id : after.id, "pod", ...row.pod.split("/"))}>${row.pod}</a>`,
      },
      {
        key: "before",
        label: "Before",
        sort: (row) => row.baseline,
        cell: (row) => html`<${Place} place=${row.baseline} run=${before} />`,
      },
      {
        key: "after",
        label: "After",
        sort: (row) => row.variant,
        cell: (row) => html`<${Place} place=${row.variant} run=${after} />`,
      },
      {
        key: "change",
        label: "Change",
        sort: (row) => row.change,
        cell: (row) =>
          row.change === "moved" ? "moved" : html`<${Judged} how=${row.change === "other" ? "" : row.change} />`,
      },
    ],
    [before.id, after.id],
  );
  return html`<section aria-labelledby="moved-title"><div class="title"><h2 id="moved-title">${count(rows.length, "pod")} changed</h2>
    <${Choice} label="Show" value=${change} onChange=${setChange} options=${CHANGES} /></div>
    <${Table} label="Pods that changed" columns=${columns} rows=${rows} rowKey=${(row) => row.pod}
      empty="None." /></section>`;
}

// Words that stand where a node would.
const NOT_A_NODE = {
  pending: ["bad", "▲"],
  preempted: ["bad", "⤓"],
  deleted: ["calm", "–"],
  "other scheduler": ["calm", "–"],
};

function Place({ place, run }) {
  const word = NOT_A_NODE[place];
  if (word)
    return html`<span class="state ${word[0]}"><span aria-hidden="true">${word[1]}</span> ${place}</span>`;
  return place === "-" ? "does not exist" : html`<a href=${linkTo(run.id, "map", place)}>${place}</a>`;
}

function ConfigDifference({ text }) {
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  return html`<section aria-labelledby="config-title"><h2 id="config-title">The configurations differ</h2>
    <pre class="diff" role="region" aria-label="Difference of the configurations" tabindex="0">${text
      .split("\n")
      .map((line) => html`<span class=${kinds[line[0]] ?? ""}>${line}${"\n"}</span>`)}</pre></section>`;
}

// What changed first; to say why, both decisions have to be made again.
function FirstDifference({ pod, runs }) {
  const [asked, setAsked] = useState(false);
  const { job, value, error } = useWork("api/compare", asked ? { runs, why: true } : null);
  return html`<section class="why-list" aria-labelledby="why-title"><h2 id="why-title">The first decisions that differ</h2>
    ${!asked && html`<p>The first is that about <strong>${pod}</strong>.
      ${" "}<button type="button" onClick=${() => setAsked(true)}>Explain</button></p>`}
    ${asked && !value && !error && html`<p role="status">Making the decisions again …</p>`}
    ${asked && !value && !error && html`<${JobProgress} job=${job} />`}
    <${Problems} error=${error} />
    ${value?.why.map((each) => html`<${Divergence} each=${each} />`)}
  </section>`;
}

function Divergence({ each }) {
  return html`<article><h3>${each.pod}</h3>
    ${!each.sameState && html`<p class="quiet">Earlier decisions already differ, so the two clusters may differ too.</p>`}
    <div class="why-sides">${each.sides.map(
      (side) => html`<div>
      <p><strong>${side.variant}</strong>: ${side.node ?? "no node"} <span
        class="quiet">(${count(side.feasible, "node fits", "nodes fit")})</span></p>
      ${side.message && html`<p class="quiet">${side.message}</p>`}
      ${
        side.scores.length > 0 &&
        html`<${Scores} scores=${side.scores} taken=${side.node}
        label=${`Scores of ${each.pod}, ${side.variant}`} />`
      }
    </div>`,
    )}</div></article>`;
}

function Scores({ scores, taken, label }) {
  const plugins = Object.keys(scores[0].byPlugin);
  return html`<div class="rows short" role="region" aria-label=${label} tabindex="0"><table>
    <thead><tr><th scope="col">Node</th><th scope="col" class="number">Total</th>${plugins.map(
      (plugin) => html`<th
      scope="col" class="number">${plugin}</th>`,
    )}</tr></thead>
    <tbody>${scores.map(
      (row) => html`<tr class=${row.node === taken ? "winner" : ""}><th scope="row">${row.node}</th>
      <td class="number"><strong>${row.total}</strong></td>${plugins.map(
        (plugin) => html`<td
        class="number">${row.byPlugin[plugin] ?? "–"}</td>`,
      )}</tr>`,
    )}</tbody>
  </table></div>`;
}
