// What the reader looks for: words that names contain, and fields such as `ns:shop` with what they must be.

export const FIELDS = [
  ["ns:shop", "pods of a namespace"],
  ["label:app=web", "pods or nodes with a label; label:app for any value"],
  ["workload:web", "pods of a workload"],
  ["gang:train", "pods of a gang"],
  ["node:n1", "a node and its pods"],
  ["priority:>=1000", "pods by priority: 0, >0, <=100"],
  ["state:gated", "pods by state, also running, finished …"],
  ["plugin:NodeAffinity", "pending pods that a plugin rejects"],
  ["taint:spot", "nodes with a taint"],
  ["is:pending", "also is:cordoned, is:tainted"],
];
const NAMES = FIELDS.map(([example]) => example.split(":")[0]);
const IS = ["pending", "cordoned", "tainted"];
// What has become of pods that are gone.
const OVER = ["finished", "preempted", "deleted"];
const STATES = ["running", "pending", "unschedulable", "gated", "ignored", "waiting", "queued", "error", ...OVER];
const PRIORITY = /^(>=|<=|>|<|=)?(-?\d+)$/;
// Spaces within quotes belong to the word.
const WORD = /(?:[^\s"]|"[^"]*"?)+/g;

// {terms: [{field, value, not, matches}], problems}; a bare word has the field "".
export function parseQuery(text) {
  const problems = [];
  const terms = [];
  for (const quoted of text.toLowerCase().match(WORD) ?? []) {
    const word = quoted.replaceAll('"', "");
    const not = word.startsWith("-") && word.length > 1;
    const [, field, value] = /^([a-z]+):(.*)$/.exec(not ? word.slice(1) : word) ?? [null, "", not ? word.slice(1) : word];
    if (!NAMES.includes(field) && field) {
      problems.push(`There is no field “${field}:”. Fields are ${NAMES.map((name) => `${name}:`).join(" ")}`);
    } else if (field === "is" && value && !IS.includes(value)) {
      problems.push(`“is:${value}” is not known; write ${IS.map((each) => `is:${each}`).join(", ")}.`);
    } else if (field === "state" && value && !STATES.some(matcher(field, value))) {
      problems.push(`There is no state “${value}”. States are ${STATES.join(", ")}.`);
    } else if (field === "priority" && value && !PRIORITY.test(value)) {
      problems.push(`“${value}” is not a priority; write a number, or one after > >= < <=.`);
    } else if (value) terms.push({ field, value, not, matches: matcher(field, value) });
  }
  return { terms, problems };
}

// A field is matched whole, `*` stands for anything; a bare word is looked for anywhere in a name.
function matcher(field, value) {
  if (field === "" && !value.includes("*")) return (text) => text.includes(value);
  if (!value.includes("*")) return (text) => text === value;
  const parts = value.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join(".*")}$`);
  return (text) => pattern.test(text);
}

// {nodes, pods}: a byte each, 1 where every term holds; null if nothing is looked for, or it makes no sense. A pod
// that is found lights its node, and a node that is found by itself lights no pod in particular.
export function find(scene, text) {
  if (last.scene !== scene || last.text !== text) last = { scene, text, found: look(scene, text) };
  return last.found;
}

// The box and the view that it filters ask the same, one after the other.
let last = { scene: null, text: null, found: null };

function look(scene, text) {
  const { terms, problems } = parseQuery(text);
  if (!terms.length || problems.length) return null;
  const { cluster, places } = scene;
  const [ofNodes, ofPods] = testsOf(scene, terms);
  const nodes = new Uint8Array(cluster.nodeCount);
  const pods = new Uint8Array(cluster.podCount);
  if (ofNodes) for (let i = 0; i < nodes.length; i += 1) nodes[i] = ofNodes.every((test) => test(i)) ? 1 : 0;
  if (ofPods)
    for (let i = 0; i < pods.length; i += 1) {
      if (!ofPods.every((test) => test(i))) continue;
      pods[i] = 1;
      if (places[i] >= 0) nodes[places[i]] = 1;
    }
  return { nodes, pods };
}

// [tests of nodes, tests of pods]: null for what a term cannot be asked of. Where all terms exclude, what is meant is
// what they exclude from: `-label:app=web` is about pods, as no node has such a label.
function testsOf(scene, terms) {
  const { cluster } = scene;
  const asked = [
    [terms.map((term) => nodeTest(cluster, term)), cluster.nodeCount],
    [terms.map((term) => podTest(scene, term)), cluster.podCount],
  ].map(([tests, number]) => (tests.includes(null) ? null : { tests, number }));
  const onlyExclude = terms.every((term) => term.not);
  const excludes = asked.map((each) => onlyExclude && each !== null && each.tests.some((test) => isOfAny(test, each.number)));
  return asked.map((each, i) => {
    if (each === null || (excludes.includes(true) && !excludes[i])) return null;
    return each.tests.map((test, k) => (terms[k].not ? (number) => !test(number) : test));
  });
}

function isOfAny(test, number) {
  for (let i = 0; i < number; i += 1) if (test(i)) return true;
  return false;
}

function nodeTest(cluster, { field, value, matches }) {
  const names = lowered(cluster, "nodes", cluster.nodeNames);
  if (field === "" && value.includes("/")) return null;
  if (field === "" || field === "node") return (i) => matches(names[i]);
  if (field === "label") return labelTest(value, (i) => cluster.nodeLabels(i), cluster.map.nodes.labels);
  if (field === "taint") return taintTest(cluster, matches);
  if (field === "is" && value === "cordoned") return (i) => cluster.isCordoned(i);
  if (field === "is" && value === "tainted") return (i) => cluster.taintsOf(i).length > 0;
  return null;
}

// A taint is named by its key, by key and value, or in full.
function taintTest(cluster, matches) {
  return (i) =>
    cluster.taintsOf(i).some((taint) => {
      const text = taint.toLowerCase();
      return matches(text) || matches(text.split(":")[0]) || matches(text.split(/[=:]/)[0]);
    });
}

function podTest(scene, { field, value, matches }) {
  const { cluster, places } = scene;
  const { pods, strings } = cluster.map;
  const names = lowered(cluster, "pods", pods.name);
  const small = lowered(cluster, "strings", strings);
  const nodes = lowered(cluster, "nodes", cluster.nodeNames);
  if (field === "") {
    if (!value.includes("/")) return (i) => matches(names[i]);
    const [space, name] = value.split("/");
    const [inSpace, named] = [matcher("ns", space), matcher("", name)];
    return (i) => inSpace(small[pods.namespace[i]]) && named(names[i]);
  }
  if (field === "ns") return oncePer(pods.namespace, (code) => matches(small[code]));
  if (field === "workload") return oncePer(pods.workload, (code) => workloadNames(small[code]).some(matches));
  if (field === "gang")
    return oncePer(pods.gang, (code) => small[code] !== "" && workloadNames(small[code]).some(matches));
  if (field === "priority") return priorityTest(pods.priority, value);
  if (field === "node") return (i) => places[i] >= 0 && matches(nodes[places[i]]);
  if (field === "label") return labelTest(value, (i) => cluster.podLabels(i), pods.labels);
  if (field === "state") return stateTest(cluster, places, matches);
  if (field === "is" && value === "pending") return (i) => places[i] === -1;
  if (field === "plugin") {
    const rejected = scene.pending().filter((row) => row.plugins.some((each) => matches(each.toLowerCase())));
    const held = new Set(rejected.map((row) => row.pod));
    return (i) => held.has(i);
  }
  return null;
}

// A pod on a node runs, and others are pending or gone, at this moment; what that comes from is known of the end.
function stateTest(cluster, places, matches) {
  const { states, pods } = cluster.map;
  const [running, pending] = [matches("running"), matches("pending")];
  const atEnd = oncePer(pods.state, (code) => states[code] !== "running" && matches(states[code]));
  const isOver = oncePer(pods.state, (code) => OVER.includes(states[code]));
  return (i) => {
    if (places[i] >= 0) return running;
    if (places[i] === -1 && (pending || isOver(i))) return pending;
    return atEnd(i) && isOver(i) === (places[i] !== -1);
  };
}

// `deployment shop/web` is called web, shop/web, or that.
function workloadNames(workload) {
  const key = workload.split(" ").pop();
  return [workload, key, key.split("/").pop()];
}

function priorityTest(priorities, value) {
  const [, sign = "=", number] = PRIORITY.exec(value);
  const limit = Number(number);
  const tests = {
    "=": (x) => x === limit,
    ">": (x) => x > limit,
    ">=": (x) => x >= limit,
    "<": (x) => x < limit,
    "<=": (x) => x <= limit,
  };
  return (i) => tests[sign](priorities[i]);
}

// Values repeat, so each is looked at once.
function oncePer(codes, test) {
  const known = new Map();
  return (i) => {
    if (!known.has(codes[i])) known.set(codes[i], test(codes[i]));
    return known.get(codes[i]);
  };
}

function labelTest(value, labelsOf, sets) {
  const [key, ...wanted] = value.split("=");
  const isKey = matcher("label", key);
  const isValue = wanted.length ? matcher("label", wanted.join("=")) : () => true;
  const known = new Map();
  return (i) => {
    if (!known.has(sets[i])) {
      const some = labelsOf(i).some(([k, v]) => isKey(k.toLowerCase()) && isValue(v.toLowerCase()));
      known.set(sets[i], some);
    }
    return known.get(sets[i]);
  };
}

// The text with one field set to a value, or without it if the value is "".
export function withField(text, field, value) {
  const rest = (text.match(WORD) ?? []).filter((word) => !word.toLowerCase().startsWith(`${field}:`)).join(" ");
  return value ? `${rest} ${field}:${value}`.trim() : rest;
}

export function fieldIn(text, field) {
  return parseQuery(text).terms.find((term) => term.field === field && !term.not)?.value ?? "";
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
