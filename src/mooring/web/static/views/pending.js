// The pods that have no node, each with its reason in one line, and which plugins stand in the way of how many.
import { useMemo } from "preact-hooks";
import { html } from "mooring/html";
import { State } from "mooring/parts";
import { podLink } from "mooring/route";
import { find, parseQuery } from "mooring/search";
import { Table } from "mooring/table";
import { clock, count } from "mooring/words";

export function PendingView({ cluster, scene, text, onText }) {
  const found = useMemo(() => find(cluster, scene.places, text), [cluster, scene, text]);
  const all = cluster.pending();
  const rows = useMemo(() => (found ? all.filter((row) => found.pods[row.pod]) : all), [all, found]);
  const holders = useMemo(() => holdersOf(all), [all]);
  const chosen = parseQuery(text).find((term) => term.field === "plugin")?.value ?? "";
  const choose = (plugin) => {
    const rest = text.replace(/(^|\s)plugin:\S*/gi, "").trim();
    onText(plugin.toLowerCase() === chosen ? rest : `${rest} plugin:${plugin}`.trim());
  };
  return html`<div class="pending-view">
    <div class="title"><h1>Pending pods</h1>
      <p>${sentence(rows.length, all.length)}</p></div>
    ${
      holders.length > 0 &&
      html`<section class="holders" aria-label="Plugins that refuse pods">
      ${holders.map(
        ([plugin, n]) => html`<button type="button" class="holder"
          aria-pressed=${plugin.toLowerCase() === chosen ? "true" : "false"}
        onClick=${() => choose(plugin)}><span class="name">${plugin}</span>
        <span class="bar" aria-hidden="true"><span style=${{ width: `${(n / all.length) * 100}%` }}></span></span>
        <span class="numbers">${n.toLocaleString("en")}</span></button>`,
      )}
    </section>`
    }
    ${
      all.length > 0 &&
      html`<${Table} label="Pending pods" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.pod}
      empty="No pending pod matches." />`
    }
  </div>`;
}

function sentence(shown, all) {
  if (!all) return "Every pod has a node.";
  const of = shown === all ? "" : ` of ${all.toLocaleString("en")}`;
  return `${count(shown, "pod")}${of} without a node at the end.`;
}

function holdersOf(rows) {
  const counts = new Map();
  for (const row of rows) for (const plugin of row.plugins) counts.set(plugin, (counts.get(plugin) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
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
    label: "Refused by",
    sort: (row) => row.plugins.join(", "),
    cell: (row) => row.plugins.join(", "),
  },
  {
    key: "message",
    label: "Reason",
    cell: (row) => html`<span title=${row.message}>${firstLine(row)}</span>`,
  },
  {
    key: "attempts",
    label: "Tried",
    align: "number",
    downFirst: true,
    sort: (row) => row.attempts,
    cell: (row) => `${row.attempts}×`,
  },
  {
    key: "since",
    label: "Since",
    align: "number",
    sort: (row) => row.sinceSeconds,
    cell: (row) => clock(row.sinceSeconds),
  },
];

// What every message begins with says nothing of this one, and what most nodes say comes first; the message
// as it is stands in the title, and on the pod's page.
function firstLine(row) {
  const [text] = row.message
    .replace(/^0\/\d+ nodes are available: /, "")
    .split(/\. (?:no new claims|preemption:)/);
  const reason = text
    .split(/, (?=\d+ )/)
    .sort((a, b) => parseInt(b, 10) - parseInt(a, 10) || 0)
    .join(", ");
  return row.nominated ? `holds a place on ${row.nominated}. ${reason}` : reason;
}
