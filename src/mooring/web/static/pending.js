// The pods that have no node at a moment, from the report at the end or from the journal before it, and what rejects
// them. The server reads the reasons from messages; here they are only counted and put together.

// Rows are {pod, key, state, message, cause, plugins, sinceSeconds, attempts, nominated}.

export const NO_CAUSE = { text: "not tried yet", of: 0, reasons: [] };
const NONE_SO_FAR = { text: "no node so far", of: 0, reasons: [] };

// While a run is under way, it is not known what rejects pods, how often they were tried and since when they wait.
export function pendingSoFar({ cluster, places }) {
  const rows = [];
  for (let pod = 0; pod < places.length; pod += 1) {
    if (places[pod] !== -1) continue;
    rows.push({
      pod,
      key: cluster.podKey(pod),
      state: "queued",
      message: NONE_SO_FAR.text,
      cause: NONE_SO_FAR,
      plugins: [],
      sinceSeconds: null,
      attempts: null,
      nominated: "",
    });
  }
  return rows;
}

const MEANS = { queued: "queued", gated: "gated", ignored: "ignored", failed: "unschedulable" };

// What was last said of each pod by then. An event belongs to the moment before the changes that follow it.
export function pendingAt(events, { cluster, places, step }) {
  const said = new Map();
  for (let i = 0; i < events.step.length && events.step[i] <= step; i += 1) {
    const pod = events.pod[i];
    if (pod < 0 || places[pod] !== -1) continue;
    const kind = events.kinds[events.kind[i]];
    const row = said.get(pod) ?? { pod, attempts: 0, nominated: "", state: "queued", at: i, sinceSeconds: 0 };
    if (kind === "queued" || kind === "gated" || kind === "ignored") row.sinceSeconds = events.atSeconds[i];
    if (kind === "failed") row.attempts += 1;
    if (kind === "nominated") row.nominated = cluster.nodeNames[events.node[i]] ?? "";
    if (kind === "waiting") row.state = "waiting";
    if (MEANS[kind]) row.state = MEANS[kind];
    if (MEANS[kind] || kind === "waiting") row.at = i;
    said.set(pod, row);
  }
  const rows = [];
  for (let pod = 0; pod < places.length; pod += 1) {
    if (places[pod] !== -1) continue;
    const row = said.get(pod) ?? { pod, attempts: 0, nominated: "", state: "queued", at: -1, sinceSeconds: 0 };
    const message = row.at < 0 ? "" : events.message[row.at];
    const cause = events.causes[message] ?? NO_CAUSE;
    rows.push({
      ...row,
      key: cluster.podKey(pod),
      message: events.strings[message] || "not tried yet",
      cause: cause.text ? cause : NO_CAUSE,
      // Messages do not name gates; a gate holds its pod to the end.
      plugins: row.state === "gated" ? (cluster.pendingRow(pod)?.plugins ?? []) : pluginsOf(cause),
    });
  }
  return rows;
}

export function pluginsOf(cause) {
  return [...new Set(cause.reasons.map(([, , plugin]) => plugin).filter(Boolean))];
}

// [{name, nodes, of, pods}]: what rejects pods, by how many nodes it rejects for them, the most first.
export function rejectionsOf(rows) {
  const sums = new Map();
  for (const row of rows) {
    for (const [name, nodes] of byPlugin(row)) {
      const sum = sums.get(name) ?? { name, nodes: 0, of: 0, pods: 0 };
      sums.set(name, { name, nodes: sum.nodes + nodes, of: sum.of + (nodes && row.cause.of), pods: sum.pods + 1 });
    }
  }
  return [...sums.values()].sort((a, b) => b.nodes - a.nodes || b.pods - a.pods || (a.name < b.name ? -1 : 1));
}

// A plugin may give several reasons for one node, so the largest counts. A reason without a number is one of PreFilter,
// which is about all nodes. A gate keeps a pod from all nodes.
function byPlugin(row) {
  const most = new Map();
  for (const [, nodes, plugin] of row.cause.reasons) {
    if (plugin) most.set(plugin, Math.max(most.get(plugin) ?? 0, nodes || row.cause.of));
  }
  if (!most.size) for (const plugin of row.plugins) most.set(plugin, 0);
  return most;
}

// {placed, waiting}: how many pods of a gang have a node at this moment, and how many wait for one.
export function fateOf(gang, scene) {
  let [placed, waiting] = [0, 0];
  for (const pod of gang.pods) {
    placed += scene.places[pod] >= 0 ? 1 : 0;
    waiting += scene.places[pod] === -1 ? 1 : 0;
  }
  return { placed, waiting };
}

// [{id, title, workload, gang, state, rows, cause}]: pods of one workload that wait for the same reasons. A gang is
// one thing, whatever each of its pods is told: its reason is that of the pods that have no room.
export function groupsOf(rows, cluster) {
  const groups = new Map();
  for (const row of rows) {
    const gang = cluster.gangs().get(cluster.gangOf(row.pod));
    if (gang) {
      const id = `gang ${gang.name}`;
      const group = groups.get(id) ?? { id, title: gang.name, workload: "", gang, state: row.state, rows: [], cause: row.cause };
      if (row.cause.of > group.cause.of) Object.assign(group, { state: row.state, cause: row.cause });
      group.rows.push(row);
      groups.set(id, group);
      continue;
    }
    const title = titleOf(row, cluster);
    const why = row.cause.reasons.map(([text]) => text).sort().join("; ");
    const id = `${title}|${row.state}|${why}`;
    if (!groups.has(id)) groups.set(id, { id, title, workload: cluster.workloadOf(row.pod), state: row.state, rows: [], cause: row.cause });
    groups.get(id).rows.push(row);
  }
  return [...groups.values()].sort((a, b) => b.rows.length - a.rows.length || b.cause.of - a.cause.of || (a.title < b.title ? -1 : 1));
}

// Pods without a controller are often numbered by those who made them.
function titleOf(row, cluster) {
  const workload = cluster.workloadOf(row.pod);
  if (workload) return workload.split(" ").pop();
  const stem = row.key.replace(/\d+$/, "");
  return stem === row.key || stem.endsWith("/") ? row.key : `${stem}*`;
}
