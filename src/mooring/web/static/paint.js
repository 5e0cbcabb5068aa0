// Colours of pods by what they are: their namespace, workload, gang or priority. Utilisation is the map's own colour.

const PAINTS = [
  ["utilisation", "utilisation"],
  ["namespace", "namespace"],
  ["workload", "workload"],
  ["priority", "priority"],
];

export function paintsFor(cluster) {
  return cluster.gangs().size ? [...PAINTS, ["gang", "gang"]] : PAINTS;
}

// What stands for the gang of a pod that has none; it gets no colour of its own.
const ALONE = Symbol("alone");

// {colourOf(pod), colourOfNode(scene, node, resource), legend: [[name, colour]]}; null for utilisation.
export function paintOf(cluster, by, palette) {
  const values = valuesOf(cluster, by);
  if (!values) return null;
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const named = by === "priority" ? ofPriorities(counts, palette) : ofNames(counts, palette);
  const others = palette.kinds[palette.kinds.length - 1];
  const colourOf = (pod) => named.get(values[pod]) ?? others;
  const legend = [...named].map(([value, colour]) => [String(value) || "no workload", colour]);
  if (by === "gang" && counts.has(ALONE)) legend.push(["in no gang", others]);
  const unnamed = counts.size - named.size - (counts.has(ALONE) ? 1 : 0);
  if (unnamed > 0) legend.push([`${unnamed} others`, others]);
  return { by, colourOf, legend, colourOfNode: (scene, node, resource) => largest(scene, node, resource, colourOf) };
}

function valuesOf(cluster, by) {
  const { pods, strings } = cluster.map;
  if (by === "namespace") return pods.namespace.map((code) => strings[code]);
  if (by === "workload") return pods.workload.map((code) => strings[code].split(" ").pop());
  if (by === "gang") return pods.gang.map((code) => strings[code] || ALONE);
  return by === "priority" ? pods.priority : null;
}

// The most frequent have a colour of their own.
function ofNames(counts, palette) {
  const colours = palette.kinds.slice(0, -1);
  const frequent = [...counts].filter(([value]) => value !== ALONE).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return new Map(frequent.slice(0, colours.length).map(([value], i) => [value, colours[i]]));
}

// From unimportant to important, as from empty to full.
function ofPriorities(counts, palette) {
  const values = [...counts.keys()].sort((a, b) => b - a).slice(0, 8);
  const { ramp } = palette;
  const at = (i) => ramp[Math.round((ramp.length - 1) * (1 - (0.85 * i) / Math.max(values.length - 1, 1)))];
  return new Map(values.map((value, i) => [value, at(i)]));
}

// A node that is too small to show its pods has the colour of the largest.
function largest(scene, node, resource, colourOf) {
  let [best, most] = [-1, -1];
  for (const pod of scene.podsOn(node)) {
    const asked = scene.cluster.requestOf(pod, resource);
    if (asked > most) [best, most] = [pod, asked];
  }
  return best < 0 ? "transparent" : colourOf(best);
}
