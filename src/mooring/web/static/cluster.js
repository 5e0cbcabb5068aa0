// A run's cluster as the server tells it in columns, and what it looked like at any step of its time.
import { pendingAt } from "mooring/pending";

export class Cluster {
  constructor(map) {
    this.map = map;
    this.nodeNames = map.nodes.name;
    this.resources = map.resources.map((each) => each.name);
    this.units = map.resources;
    this.nodeCount = map.nodes.name.length;
    this.podCount = map.pods.name.length;
    // float64[pod] and the sum over all nodes, by resource: asked for at every step of time.
    this.requests = this.resources.map((_, r) =>
      Float64Array.from(map.pods.shape, (shape) => map.shapes[shape][r]),
    );
    this.capacities = map.nodes.allocatable.map((amounts) => amounts.reduce((a, b) => a + b, 0));
  }

  podKey(pod) {
    return `${this.namespaceOf(pod)}/${this.map.pods.name[pod]}`;
  }

  namespaceOf(pod) {
    return this.map.strings[this.map.pods.namespace[pod]];
  }

  podState(pod) {
    return this.map.states[this.map.pods.state[pod]];
  }

  workloadOf(pod) {
    return this.map.strings[this.map.pods.workload[pod]];
  }

  // The pod group that it is scheduled with; "" if it is scheduled alone.
  gangOf(pod) {
    return this.map.strings[this.map.pods.gang[pod]];
  }

  // Map of name → {name, minCount, topologyKey, message, pods}.
  gangs() {
    if (!this.foundGangs) {
      this.foundGangs = new Map(this.map.gangs.map((gang) => [gang.name, { ...gang, pods: [] }]));
      if (this.foundGangs.size)
        for (let pod = 0; pod < this.podCount; pod += 1) this.foundGangs.get(this.gangOf(pod))?.pods.push(pod);
    }
    return this.foundGangs;
  }

  podLabels(pod) {
    return this.#labels(this.map.pods.labels[pod]);
  }

  nodeLabels(node) {
    return this.#labels(this.map.nodes.labels[node]);
  }

  taintsOf(node) {
    return this.map.taintSets[this.map.nodes.taints[node]];
  }

  isCordoned(node) {
    return this.map.nodes.cordoned[node] === 1;
  }

  requestOf(pod, resource) {
    return this.requests[resource][pod];
  }

  // What the map shows until somebody chooses: cpu, or what pods request if they request no cpu; if they request
  // nothing, their number.
  mainResource() {
    const asked = this.resources.find((name, r) => name !== "pods" && this.requests[r].some((amount) => amount));
    return asked ?? (this.podCount ? "pods" : "cpu");
  }

  capacityOf(node, resource) {
    return this.map.nodes.allocatable[resource][node];
  }

  indexOfNode(name) {
    this.nodeIndex ??= new Map(this.nodeNames.map((each, i) => [each, i]));
    return this.nodeIndex.get(name) ?? -1;
  }

  indexOfPod(key) {
    this.podIndex ??= new Map(Array.from({ length: this.podCount }, (_, i) => [this.podKey(i), i]));
    return this.podIndex.get(key) ?? -1;
  }

  // What nodes are called where there is little room: without their domain, if that tells them apart.
  shortNames() {
    if (!this.foundShortNames) {
      const hosts = this.nodeNames.map((name) => name.split(".")[0]);
      const isTold = new Set(hosts).size === hosts.length && hosts.every((host) => /[a-z]/.test(host));
      this.foundShortNames = isTold ? hosts : this.nodeNames;
    }
    return this.foundShortNames;
  }

  namespaces() {
    this.foundNamespaces ??= [...new Set(this.map.pods.namespace)].map((i) => this.map.strings[i]).sort();
    return this.foundNamespaces;
  }

  nodeLabelKeys() {
    if (!this.foundLabelKeys) {
      const keys = new Set();
      for (const set of new Set(this.map.nodes.labels)) for (const [key] of this.#labels(set)) keys.add(key);
      this.foundLabelKeys = [...keys].sort();
    }
    return this.foundLabelKeys;
  }

  // The devices of a node at the end of the run.
  devicesOf(node) {
    const { devices, strings } = this.map;
    if (!this.devicesByNode) {
      this.devicesByNode = new Map();
      devices.node.forEach((on, i) => {
        this.devicesByNode.set(on, [...(this.devicesByNode.get(on) ?? []), i]);
      });
    }
    return (this.devicesByNode.get(node) ?? []).map((i) => ({
      name: devices.name[i],
      classes: devices.classes[i].map((each) => strings[each]),
      state: devices.states[devices.state[i]],
      holders: devices.holders[i].map((each) => ({ ...each, claim: strings[each.claim] })),
    }));
  }

  // The pending pods of the report, as rows.
  pending() {
    const { strings, states, pending } = this.map;
    this.pendingRows ??= pending.pod.map((pod, i) => ({
      pod,
      key: this.podKey(pod),
      state: states[pending.state[i]],
      message: strings[pending.message[i]],
      cause: pending.causes[pending.cause[i]],
      plugins: mostFirst(pending.causes[pending.cause[i]], pending.plugins[i].map((each) => strings[each])),
      sinceSeconds: pending.sinceSeconds[i],
      attempts: pending.attempts[i],
      nominated: pending.nominatedNode[i] < 0 ? "" : this.nodeNames[pending.nominatedNode[i]],
    }));
    return this.pendingRows;
  }

  // The row of a pod that is pending at the end.
  pendingRow(pod) {
    this.rowsByPod ??= new Map(this.pending().map((row) => [row.pod, row]));
    return this.rowsByPod.get(pod) ?? null;
  }

  // [{name, nodes}] by a label's value, in the order of the names; "" puts all into one.
  groups(key) {
    this.groupCache ??= new Map();
    if (!this.groupCache.has(key)) this.groupCache.set(key, this.#groupsBy(key));
    return this.groupCache.get(key);
  }

  #groupsBy(key) {
    const groups = new Map();
    for (let node = 0; node < this.nodeCount; node += 1) {
      const name = key ? this.#labelValue(node, key) : "all nodes";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(node);
    }
    return [...groups].map(([name, nodes]) => ({ name, nodes }));
  }

  #labelValue(node, key) {
    this.valueCache ??= new Map();
    if (!this.valueCache.has(key)) this.valueCache.set(key, new Map());
    const values = this.valueCache.get(key);
    const set = this.map.nodes.labels[node];
    if (!values.has(set)) {
      const found = this.#labels(set).find(([each]) => each === key);
      values.set(set, found ? found[1] || "(empty)" : "(none)");
    }
    return values.get(set);
  }

  #labels(set) {
    const { labelSets, strings } = this.map;
    this.labelCache ??= new Map();
    if (!this.labelCache.has(set)) {
      const pairs = [];
      const flat = labelSets[set];
      for (let i = 0; i < flat.length; i += 2) pairs.push([strings[flat[i]], strings[flat[i + 1]]]);
      this.labelCache.set(set, pairs);
    }
    return this.labelCache.get(set);
  }
}

// Plugins in the order of the nodes that they reject, then those of which the message does not say.
function mostFirst(cause, plugins) {
  const counted = cause.reasons.map(([, , plugin]) => plugin).filter((plugin) => plugins.includes(plugin));
  return [...new Set([...counted, ...plugins])];
}

const GONE = -2;

// Where every pod is at one moment, and what that comes to for the nodes.
export class Scene {
  // `pendingRows(scene)`: what is said of the pods that are pending then.
  constructor(cluster, places, step, pendingRows) {
    this.cluster = cluster;
    this.pendingRows = pendingRows;
    this.places = places;
    this.step = step;
    this.#sort();
  }

  static atEnd(cluster) {
    const waits = new Set(cluster.map.pending.pod);
    const places = Int32Array.from(cluster.map.pods.node, (at, pod) =>
      at >= 0 || waits.has(pod) ? at : GONE,
    );
    return new Scene(cluster, places, null, () => cluster.pending());
  }

  // The pods of each node lie together in `pods`, from `first[node]` to `first[node + 1]`.
  #sort() {
    const nodes = this.cluster.nodeCount;
    const first = new Uint32Array(nodes + 2);
    for (const at of this.places) if (at >= 0) first[at + 2] += 1;
    for (let i = 2; i < first.length; i += 1) first[i] += first[i - 1];
    this.pods = new Uint32Array(first[nodes + 1]);
    for (let pod = 0; pod < this.places.length; pod += 1) {
      const at = this.places[pod];
      if (at >= 0) this.pods[first[at + 1]++] = pod;
    }
    this.first = first;
    this.sums = [];
    this.parts = [];
  }

  podsOn(node) {
    return this.pods.subarray(this.first[node], this.first[node + 1]);
  }

  // float64[node]: what the pods on each node ask for.
  requested(resource) {
    this.sums[resource] ??= this.#sum(this.cluster.requests[resource]);
    return this.sums[resource];
  }

  #sum(requests) {
    const sums = new Float64Array(this.cluster.nodeCount);
    const { places } = this;
    for (let pod = 0; pod < places.length; pod += 1) {
      const at = places[pod];
      if (at >= 0) sums[at] += requests[pod];
    }
    return sums;
  }

  // float64[node]: the part of its capacity.
  utilisations(resource) {
    const capacities = this.cluster.map.nodes.allocatable[resource];
    this.parts[resource] ??= this.requested(resource).map((used, node) =>
      capacities[node] ? used / capacities[node] : 0,
    );
    return this.parts[resource];
  }

  utilisation(node, resource) {
    return this.utilisations(resource)[node];
  }

  whole(resource) {
    const capacity = this.cluster.capacities[resource];
    const used = this.requested(resource).reduce((a, b) => a + b, 0);
    return { used, capacity, share: capacity ? used / capacity : null };
  }

  waiting() {
    this.waitingCount ??= this.places.reduce((sum, at) => sum + (at === -1 ? 1 : 0), 0);
    return this.waitingCount;
  }

  pending() {
    this.pendingNow ??= this.pendingRows(this);
    return this.pendingNow;
  }
}

// A value that is the same as the one before needs no point of its own.
function putValue(xs, values, x, value) {
  const last = xs.length - 1;
  if (xs[last] === x) values[last] = value;
  else if (values[last] !== value) {
    xs.push(x);
    values.push(value);
  }
}

// The cluster's life: goes forward by making changes, and back by starting again from the beginning.
export class Reel {
  constructor(cluster, time) {
    this.cluster = cluster;
    this.time = time;
    this.steps = time.changes.pod.length;
    this.start = Int32Array.from(time.start);
    this.#rewind();
  }

  #rewind() {
    this.places = this.start.slice();
    this.step = 0;
  }

  at(step) {
    const { pod, node } = this.time.changes;
    if (step < this.step) this.#rewind();
    for (; this.step < step; this.step += 1) this.places[pod[this.step]] = node[this.step];
    return new Scene(this.cluster, this.places.slice(), step, (scene) => pendingAt(this.time.events, scene));
  }

  // [xs, counts]: how many pods wait, wherever that changes. By seconds, a pod that comes and gets its node in the
  // same second does not wait.
  waitingOver(bySeconds) {
    const { pod, node, atSeconds } = this.time.changes;
    const places = this.start.slice();
    let waiting = places.reduce((sum, at) => sum + (at === -1 ? 1 : 0), 0);
    const [xs, counts] = [[0], [waiting]];
    for (let i = 0; i < this.steps; i += 1) {
      waiting += (node[i] === -1 ? 1 : 0) - (places[pod[i]] === -1 ? 1 : 0);
      places[pod[i]] = node[i];
      if (bySeconds && !this.isSettled(i + 1)) continue;
      putValue(xs, counts, bySeconds ? atSeconds[i] : i + 1, waiting);
    }
    return this.#toEnd(xs, [counts], bySeconds);
  }

  // [xs, counts]: how many pods were preempted so far; null if not all events are known.
  preemptedOver(bySeconds) {
    const { events } = this.time;
    if (events.leftOut) return null;
    const code = events.kinds.indexOf("preempted");
    const [xs, counts] = [[0], [0]];
    let sum = 0;
    for (let i = 0; code >= 0 && i < events.kind.length; i += 1) {
      if (events.kind[i] !== code) continue;
      sum += 1;
      putValue(xs, counts, bySeconds ? events.atSeconds[i] : events.step[i], sum);
    }
    return this.#toEnd(xs, [counts], bySeconds);
  }

  // [xs, …columns] of the samples; by seconds only of those after which nothing more happens in their second.
  sampled(columns, bySeconds) {
    const { step, atSeconds } = this.time.samples;
    const kept = step.map((_, i) => i).filter((i) => !bySeconds || this.isSettled(step[i]));
    const of = (values) => kept.map((i) => values[i]);
    return this.#toEnd(of(bySeconds ? atSeconds : step), columns.map(of), bySeconds);
  }

  // Whether the next change is of a later second.
  isSettled(step) {
    const { atSeconds } = this.time.changes;
    return step >= this.steps || atSeconds[step] > (step ? atSeconds[step - 1] : 0);
  }

  // All plots end where time ends.
  #toEnd(xs, columns, bySeconds) {
    const end = bySeconds ? this.time.endSeconds : this.steps;
    if (!xs.length || xs[xs.length - 1] >= end) return [xs, ...columns];
    return [[...xs, end], ...columns.map((values) => [...values, values[values.length - 1]])];
  }

  // How many changes were made by then.
  stepBy(seconds) {
    const times = this.time.changes.atSeconds;
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= seconds) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  secondsAt(step) {
    if (step >= this.steps) return this.time.endSeconds;
    return step ? this.time.changes.atSeconds[step - 1] : 0;
  }
}
