// A workload or a gang: its pods at this moment, where they are, and what keeps the others from a node.
import { useMemo } from "preact-hooks";
import { html } from "mooring/html";
import { State } from "mooring/parts";
import { groupsOf } from "mooring/pending";
import { link, linkWith, podLink } from "mooring/route";
import { Table } from "mooring/table";
import { TimeStrip } from "mooring/timestrip";
import { count } from "mooring/words";

export function WorkloadView({ cluster, moments, scene, name, isGang = false }) {
  const pods = useMemo(
    () => (isGang ? (cluster.gangs().get(name)?.pods ?? []) : podsOf(cluster, name)),
    [cluster, name, isGang],
  );
  const rows = useMemo(() => rowsOf(cluster, scene, pods), [cluster, scene, pods]);
  const waiting = useMemo(() => {
    const own = new Set(pods);
    return groupsOf(scene.pending().filter((row) => own.has(row.pod)), cluster);
  }, [scene, cluster, pods]);
  if (!pods.length)
    return html`<div class="empty"><h1>No such ${isGang ? "gang" : "workload"}</h1>
      <p>No pod of this run belongs to “${name}”. <a href=${link("map")}>Go to the map</a></p></div>`;
  const placed = rows.filter((row) => row.node);
  const nodes = new Set(placed.map((row) => row.node));
  return html`<article class="workload-view">
    <header class="title"><p class="crumbs"><a href=${link("map")}>Map</a> /</p>
      <h1>${name}</h1> <p>${isGang ? "Gang" : cluster.workloadOf(pods[0]).split(" ")[0]}: ${count(placed.length, "pod")} on ${count(nodes.size, "node")},
        ${" "}${count(rows.filter((row) => row.state === "pending").length, "pod")} pending.</p>
      <p><a href=${linkWith({ q: `${isGang ? "gang" : "workload"}:${name}` }, "map")}>Show on the map</a></p></header>
    ${waiting.map((group) => html`<p class="reason">${count(group.rows.length, "pod")} ${group.state}: ${group.cause.of ? `of ${count(group.cause.of, "node")}, ${group.cause.text}` : group.rows[0].message}</p>`)}
    <${Table} label=${`Pods of the ${isGang ? "gang" : "workload"}`} columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.key} sortIn="sort" sortedBy="pod" />
    <${TimeStrip} moments=${moments} />
  </article>`;
}

function podsOf(cluster, name) {
  const { pods, strings } = cluster.map;
  const codes = new Set();
  strings.forEach((text, code) => {
    if (text.split(" ").pop() === name && text.includes(" ")) codes.add(code);
  });
  const found = [];
  for (let pod = 0; pod < cluster.podCount; pod += 1) if (codes.has(pods.workload[pod])) found.push(pod);
  return found;
}

function rowsOf(cluster, scene, pods) {
  return pods.map((pod) => {
    const at = scene.places[pod];
    const over = cluster.podState(pod);
    const state = at >= 0 ? "running" : at === -1 ? "pending" : over === "running" ? "not there yet" : over;
    return { key: cluster.podKey(pod), state, node: at >= 0 ? cluster.nodeNames[at] : "", priority: cluster.map.pods.priority[pod] };
  });
}

// All pods are of the namespace in the title.
const COLUMNS = [
  { key: "pod", label: "Pod", sort: (row) => row.key, cell: (row) => html`<a href=${podLink(row.key)} title=${row.key}>${row.key.split("/").pop()}</a>` },
  { key: "state", label: "State", sort: (row) => row.state, cell: (row) => html`<${State} state=${row.state} />` },
  {
    key: "node",
    label: "Node",
    sort: (row) => row.node || null,
    cell: (row) => (row.node ? html`<a href=${link("map", row.node)}>${row.node}</a>` : "–"),
  },
  { key: "priority", label: "Priority", align: "number", downFirst: true, sort: (row) => row.priority, cell: (row) => row.priority },
];
