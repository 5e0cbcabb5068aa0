// Node × plugin: what each filter says of each node, and how those that fit are scored.
import { useMemo, useState } from "preact-hooks";
import { html } from "mooring/html";
import { link } from "mooring/route";
import { Table } from "mooring/table";
import { count } from "mooring/words";

export function MatrixTable({ cluster, page }) {
  const { matrix } = page;
  const [word, setWord] = useState("");
  const rows = useMemo(() => rowsOf(cluster, matrix), [cluster, matrix]);
  const columns = useMemo(() => columnsOf(page, matrix), [page, matrix]);
  const shown = useMemo(() => {
    const wanted = word.trim().toLowerCase();
    return wanted
      ? rows.filter((row) =>
          `${row.name} ${row.verdict.plugin ?? ""} ${row.reason}`.toLowerCase().includes(wanted),
        )
      : rows;
  }, [rows, word]);
  const scored = matrix.scored.length > 0;
  const fitting = rows.filter((row) => row.fits).length;
  return html`<section class="matrix" aria-labelledby="matrix-title">
    <div class="title"><h2 id="matrix-title">Every node, every plugin</h2>
      <p>${page.asOf}. ${count(fitting, "node")} of ${rows.length.toLocaleString("en")} ${fitting === 1 ? "fits" : "fit"}.</p>
      <label class="field"><span>Filter rows</span>
        <input type="search" value=${word} placeholder="node, plugin or reason"
          onInput=${(e) => setWord(e.currentTarget.value)} /></label>
    </div>
    ${scored && html`<${Margin} cluster=${cluster} page=${page} />`}
    <${Table} label="Node by plugin" columns=${columns} rows=${shown} rowKey=${(row) => row.i}
      sortedBy=${scored ? "total" : "verdict"} descending=${scored}
      sortIn="sort" rowClass=${(row) => (row.name === page.chosen ? "winner" : row.name === page.node ? "here" : row.fits ? "" : "refused")}
        empty="No such node." />
  </section>`;
}

function rowsOf(cluster, matrix) {
  const rank = new Map(matrix.scored.map((i, k) => [i, k]));
  const nominated = new Set(matrix.withNominated);
  return matrix.nodes.map((node, i) => {
    const verdict = matrix.statuses[matrix.verdicts[i]];
    return {
      i,
      name: cluster.nodeNames[node],
      verdict,
      fits: verdict.code === "Success",
      rank: rank.get(i) ?? null,
      // Nodes that no plugin was asked about have no reason.
      reason: (verdict.reasons ?? []).join(", ") || (verdict.code === "Success" ? "" : "not considered"),
      nominated: nominated.has(i),
    };
  });
}

function columnsOf(page, matrix) {
  const would = page.cameWithNode || page.chosen !== page.node;
  const total = (row) => (row.rank === null ? null : matrix.totals[row.rank]);
  return [
    {
      key: "node",
      label: "Node",
      sort: (row) => row.name,
      cell: (row) => html`<span class="named"><a href=${link("map", row.name)} title=${row.name}>${row.name}</a>${
        row.name === page.node && would && html` <span class="chip">it is here</span>`
      }${row.name === page.chosen && html` <span class="chip">${would ? "would be chosen" : "chosen"}</span>`}</span>`,
    },
    {
      key: "total",
      label: "Total",
      align: "number",
      downFirst: true,
      sort: total,
      cell: (row) => html`<strong>${total(row) ?? "–"}</strong>`,
    },
    {
      key: "verdict",
      label: "Verdict",
      sort: (row) => (row.fits ? "" : `${row.verdict.plugin ?? ""} ${row.reason}`),
      cell: (row) =>
        row.fits
          ? html`<span class="state ok"><span aria-hidden="true">✓</span> fits</span>`
          : html`<span class="why"
            title=${`${row.verdict.plugin ?? ""}: ${row.reason} (${row.verdict.code})`}>${row.reason}${row.nominated && " (with the pods nominated to it)"}</span>`,
    },
    ...matrix.filters.map((filter) => ({
      key: `f:${filter.plugin}`,
      label: abbreviated(filter.plugin),
      title: `Filter ${filter.plugin}`,
      align: "mark",
      sort: (row) => filter.codes[row.i],
      cell: (row) => html`<${Verdict} status=${statusOf(filter, row.i)} plugin=${filter.plugin} />`,
    })),
    ...matrix.scores.map((score) => ({
      key: `s:${score.plugin}`,
      label: `${abbreviated(score.plugin)} ×${score.weight}`,
      title: `Score ${score.plugin}, weight ${score.weight}`,
      align: "number",
      downFirst: true,
      sort: (row) => (row.rank === null ? null : score.normalized[row.rank] * score.weight),
      cell: (row) => html`<${Points} score=${score} rank=${row.rank} />`,
    })),
  ];
}

// Names wrap between their words.
function abbreviated(plugin) {
  return plugin.replace(/([a-z])([A-Z])/g, "$1​$2");
}

function statusOf(filter, i) {
  return filter.codes[i] < 0 ? null : filter.statuses[filter.codes[i]];
}

function Verdict({ status, plugin }) {
  if (status === null)
    return html`<span class="v none" title=${`${plugin} was not asked`}><span aria-hidden="true">·</span><span
      class="unseen">not asked</span></span>`;
  if (status.code === "Success")
    return html`<span class="v ok"><span aria-hidden="true">✓</span><span class="unseen">passes</span></span>`;
  const text = (status.reasons ?? []).join(", ") || status.code;
  return html`<span class="v bad" title=${`${plugin}: ${text}`}><span aria-hidden="true">✕</span><span
    class="unseen">rejects: ${text}</span></span>`;
}

function Points({ score, rank }) {
  if (rank === null) return "–";
  const normalized = score.normalized[rank];
  return html`<span class="points"
    title=${`raw ${score.raw[rank]}, normalized ${normalized}, weight ${score.weight}`}>
    <span class="fill" aria-hidden="true"
      style=${{ width: `${normalized}%` }}></span>${normalized * score.weight}</span>`;
}

// By what the winner leads the next one that is not as good.
function Margin({ cluster, page }) {
  const { matrix, margin, tied, tiedCount } = page;
  const first = matrix.nodes.findIndex((node) => cluster.nodeNames[node] === page.chosen);
  // A node that was nominated for the pod is taken whatever others would score.
  if (page.chosen && first >= 0 && matrix.scored[0] !== first && matrix.scored.includes(first)) return null;
  const next = matrix.totals.findIndex((total) => total < matrix.totals[0]);
  const name = (k) => cluster.nodeNames[matrix.nodes[matrix.scored[k]]];
  if (margin === null || next < 0) {
    const why =
      tiedCount > 1
        ? `${count(tiedCount, "node")} have the same score; the tie-break chose ${name(0)}.`
        : `${name(0)} is the only node that was scored.`;
    return html`<p class="margin">${why}</p>`;
  }
  const leads = matrix.scores
    .map((score) => [score.plugin, (score.normalized[0] - score.normalized[next]) * score.weight])
    .filter(([, lead]) => lead)
    .sort((a, b) => b[1] - a[1]);
  const widest = Math.max(...leads.map(([, lead]) => Math.abs(lead)));
  return html`<div class="margin">
    <p><strong>${name(0)}</strong> with ${matrix.totals[0]} points leads <strong>${name(next)}</strong> by <strong>${margin}</strong>
      ${
        tiedCount > 1 &&
        html`, as do ${count(tiedCount - 1, "other")} with the same total (${tied
          .filter((each) => each !== name(0))
          .slice(0, 3)
          .join(", ")}${tiedCount > 4 ? ", …" : ""})`
      }:</p>
    <ul>${leads.map(
      ([plugin, lead]) => html`<li class=${lead > 0 ? "for" : "against"}>
      <span class="name">${plugin}</span>
      <span class="bar" aria-hidden="true"><span
        style=${{ width: `${(Math.abs(lead) / widest) * 100}%` }}></span></span>
      <span class="numbers">${lead > 0 ? "+" : "−"}${Math.abs(lead)}</span></li>`,
    )}</ul>
  </div>`;
}
