// Before and after, side by side, with what differs and why.
import { useMemo } from "preact-hooks";
import { isReport } from "mooring/api";
import { html } from "mooring/html";
import { JobProgress } from "mooring/jobs";
import { ClusterMap } from "mooring/map";
import { useCluster, useEndScene } from "mooring/moment";
import { Choice, Problems } from "mooring/parts";
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
  if (!before || !after) return html`<p class="empty">This run no longer exists.</p>`;
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
    <${Values} value=${value} />
    <${Moved} difference=${difference} before=${before} after=${after} />
    ${difference.why.length > 0 && html`<${Why} divergences=${difference.why} />`}
  </div>`;
}

function Verdict({ value, difference }) {
  const [was, is] = value.variants.map((each) => each.values.pending);
  const moved = difference.moved.length
    ? `${count(difference.moved.length, "pod is", "pods are")} on another node`
    : "Every pod is on the same node";
  const pending =
    is === was
      ? `the same number pending (${is})`
      : `${Math.abs(is - was)} ${is < was ? "fewer" : "more"} pending (${was} before, ${is} after)`;
  return html`<p class="verdict">${moved}; ${pending}.</p>`;
}

function Sides({ before, after, moved }) {
  const one = useCluster(before);
  const two = useCluster(after);
  const options = useMapOptions(one.cluster);
  if (!one.cluster || !two.cluster) return html`<p class="loading">Drawing …</p>`;
  return html`<section class="sides" aria-label="Maps before and after">
    <div class="toolbar"><${MapOptions} cluster=${one.cluster}
      options=${options} /><${Legend} name=${one.cluster.resources[options.resource]} /></div>
    <${Side} title="Before" run=${before} cluster=${one.cluster} options=${options} moved=${moved} />
    <${Side} title="After" run=${after} cluster=${two.cluster} options=${options} moved=${moved} />
  </section>`;
}

function Side({ title, run, cluster, options, moved }) {
  const scene = useEndScene(cluster);
  const found = useMemo(() => litBy(cluster, scene, moved), [cluster, scene, moved]);
  return html`<div class="side"><h2>${title} <span class="quiet">${run.name}</span></h2>
    <${ClusterMap} label=${`Nodes ${title.toLowerCase()}`} scene=${scene} resource=${options.resource}
      groupKey=${options.groupKey}
      sizeBy=${options.sizeBy} found=${found} selected=${-1} onSelect=${() => {}} /></div>`;
}

// The pods that moved are outlined; no node is dimmed for it.
function litBy(cluster, scene, moved) {
  if (!moved.size) return null;
  const pods = new Uint8Array(cluster.podCount);
  for (const key of moved) {
    const pod = cluster.indexOfPod(key);
    if (pod >= 0) pods[pod] = 1;
  }
  return { nodes: new Uint8Array(cluster.nodeCount).fill(1), pods };
}

function Values({ value }) {
  const [before, after] = value.variants;
  const rows = Object.keys(before.values)
    .filter((key) => key in after.values && !(before.values[key] === null && after.values[key] === null))
    .map((key) => ({ key, was: before.values[key], is: after.values[key] }));
  return html`<section aria-labelledby="values-title"><h2 id="values-title">In numbers</h2>
    <div class="rows short" role="region" aria-label="Numbers before and after" tabindex="0"><table>
      <thead><tr><th scope="col">Measure</th><th scope="col" class="number">Before</th><th scope="col"
        class="number">After</th><th scope="col" class="number">Change</th></tr></thead>
      <tbody>${rows.map(
        ({ key, was, is }) => html`<tr class=${was === is ? "same" : "lit"}>
        <th scope="row">${value.labels?.[key] ?? key}</th>
        <td class="number">${spelled(key, was)}</td><td class="number">${spelled(key, is)}</td>
        <td class="number">${changeOf(key, was, is)}</td></tr>`,
      )}</tbody>
    </table></div></section>`;
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
  if (SHARES.test(key)) return `${sign}${(by * 100).toFixed(1)} points`;
  return `${sign}${Number.isInteger(by) ? by.toLocaleString("en") : by.toFixed(2)}`;
}

function Moved({ difference, before, after }) {
  const columns = useMemo(
    () => [
      {
        key: "pod",
        label: "Pod",
        sort: (row) => row.pod,
        cell: (row) => html`<a href=${linkTo(after.id, "pod", ...row.pod.split("/"))}>${row.pod}</a>`,
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
    ],
    [before.id, after.id],
  );
  return html`<section aria-labelledby="moved-title"><h2 id="moved-title">${count(difference.moved.length, "pod")} on another node</h2>
    <${Table} label="Pods on another node" columns=${columns} rows=${difference.moved} rowKey=${(row) => row.pod}
      empty="None." /></section>`;
}

function Place({ place, run }) {
  if (place === "pending")
    return html`<span class="state bad"><span aria-hidden="true">▲</span> pending</span>`;
  return place === "-" ? "does not exist" : html`<a href=${linkTo(run.id, "map", place)}>${place}</a>`;
}

function Why({ divergences }) {
  return html`<section class="why-list"
    aria-labelledby="why-title"><h2 id="why-title">The first decisions that differ</h2>
    ${divergences.map(
      (each) => html`<article><h3>${each.pod}</h3>
      ${!each.sameState && html`<p class="quiet">Earlier decisions already differ, so the two clusters differ too.</p>`}
      <div class="why-sides">${each.sides.map(
        (side) => html`<div>
        <p><strong>${side.variant}</strong>: ${side.node ?? "no node"} <span
          class="quiet">(${count(side.feasible, "node")} fit)</span></p>
        ${side.message && html`<p class="quiet">${side.message}</p>`}
        ${
          side.scores.length > 0 &&
          html`<${Scores} scores=${side.scores} taken=${side.node}
          label=${`Scores of ${each.pod}, ${side.variant}`} />`
        }
      </div>`,
      )}</div></article>`,
    )}
  </section>`;
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
