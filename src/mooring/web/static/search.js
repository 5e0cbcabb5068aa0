// What the reader looks for: words, and `ns: label: node: plugin: state: taint: is:` with what they must be.

const FIELDS = ["ns", "label", "node", "plugin", "state", "taint", "is"];

export const HINT = "web ns:shop label:app=web node:n1 plugin:NodeAffinity is:cordoned";

// [{field, value}]; a bare word has the field "".
export function parseQuery(text) {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const [, field, value] = /^([a-z]+):(.*)$/.exec(word) ?? [];
      return FIELDS.includes(field) ? { field, value } : { field: "", value: word };
    })
    .filter((term) => term.value);
}

// {nodes, pods}: a byte each, 1 where every term holds; null if nothing is looked for. A pod that is
// found lights its node, and a node that is found by itself lights no pod in particular.
export function find(cluster, places, text) {
  if (last.cluster !== cluster || last.places !== places || last.text !== text) {
    last = { cluster, places, text, found: look(cluster, places, text) };
  }
  return last.found;
}

// The box and the view that it filters ask the same, one after the other.
let last = { cluster: null, places: null, text: null, found: null };

function look(cluster, places, text) {
  const terms = parseQuery(text);
  if (!terms.length) return null;
  const ofNodes = nodeTests(cluster, terms);
  const ofPods = podTests(cluster, places, terms);
  const nodes = new Uint8Array(cluster.nodeCount);
  const pods = new Uint8Array(cluster.podCount);
  for (let i = 0; i < nodes.length; i += 1) nodes[i] = ofNodes.every((test) => test(i)) ? 1 : 0;
  for (let i = 0; i < pods.length; i += 1) {
    if (!ofPods.every((test) => test(i))) continue;
    pods[i] = 1;
    if (places[i] >= 0) nodes[places[i]] = 1;
  }
  return { nodes, pods };
}

const never = () => false;

function nodeTests(cluster, terms) {
  const names = lowered(cluster, "nodes", cluster.nodeNames);
  return terms.map(({ field, value }) => {
    if (field === "" || field === "node") return (i) => names[i].includes(value);
    if (field === "label") return labelTest(value, (i) => cluster.nodeLabels(i), cluster.map.nodes.labels);
    if (field === "taint")
      return (i) => cluster.taintsOf(i).some((taint) => taint.toLowerCase().includes(value));
    if (field === "is" && "cordoned".startsWith(value)) return (i) => cluster.isCordoned(i);
    if (field === "is" && "tainted".startsWith(value)) return (i) => cluster.taintsOf(i).length > 0;
    return never;
  });
}

function podTests(cluster, places, terms) {
  const { pods, strings } = cluster.map;
  const names = lowered(cluster, "pods", pods.name);
  const small = lowered(cluster, "strings", strings);
  const nodes = lowered(cluster, "nodes", cluster.nodeNames);
  return terms.map(({ field, value }) => {
    if (field === "") {
      const [space, name] = value.includes("/") ? value.split("/") : [null, value];
      if (space !== null) return (i) => small[pods.namespace[i]].endsWith(space) && names[i].startsWith(name);
      return (i) => names[i].includes(name);
    }
    if (field === "ns") return (i) => small[pods.namespace[i]].includes(value);
    if (field === "node") return (i) => places[i] >= 0 && nodes[places[i]].includes(value);
    if (field === "label") return labelTest(value, (i) => cluster.podLabels(i), pods.labels);
    if (field === "state") return (i) => cluster.podState(i).startsWith(value);
    if (field === "is" && "pending".startsWith(value)) return (i) => places[i] === -1;
    if (field === "plugin") {
      const held = new Set(
        cluster
          .pending()
          .filter((row) => row.plugins.some((each) => each.toLowerCase().includes(value)))
          .map((row) => row.pod),
      );
      return (i) => held.has(i);
    }
    return never;
  });
}

// Labels repeat, so each set of them is looked at once.
function labelTest(value, labelsOf, sets) {
  const [key, wanted] = value.split("=");
  const known = new Map();
  return (i) => {
    if (!known.has(sets[i])) {
      known.set(
        sets[i],
        labelsOf(i).some(([k, v]) => {
          if (wanted === undefined) return k.toLowerCase().includes(key) || v.toLowerCase().includes(key);
          return k.toLowerCase().includes(key) && v.toLowerCase().startsWith(wanted);
        }),
      );
    }
    return known.get(sets[i]);
  };
}

// What the first search would otherwise have to wait for.
export function prepare(cluster) {
  lowered(cluster, "nodes", cluster.nodeNames);
  lowered(cluster, "pods", cluster.map.pods.name);
  lowered(cluster, "strings", cluster.map.strings);
}

function lowered(cluster, what, values) {
  cluster.lowered ??= {};
  cluster.lowered[what] ??= values.map((each) => each.toLowerCase());
  return cluster.lowered[what];
}
