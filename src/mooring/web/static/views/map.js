// The cluster as a whole: the map or its table, what waits outside, and the node that was chosen.
import { useMemo, useState } from "preact-hooks";
import { html } from "mooring/html";
import { ClusterMap } from "mooring/map";
import { NodePanel } from "mooring/nodepanel";
import { NodeTable } from "mooring/nodetable";
import { Choice, Switch } from "mooring/parts";
import { go, link, podLink } from "mooring/route";
import { find } from "mooring/search";
import { TimeStrip } from "mooring/timestrip";
import { count, share } from "mooring/words";

export function useMapOptions(cluster) {
  const [resource, setResource] = useState("cpu");
  const [groupKey, setGroupKey] = useState(null);
  const [sizeBy, setSizeBy] = useState("capacity");
  const index = Math.max(0, cluster ? cluster.resources.indexOf(resource) : 0);
  return {
    resource: index,
    setResource,
    sizeBy,
    setSizeBy,
    setGroupKey,
    groupKey: groupKey ?? cluster?.map.groupKeys[0] ?? "",
  };
}

export function MapOptions({ cluster, options }) {
  const keys = [...new Set([...cluster.map.groupKeys, ...cluster.nodeLabelKeys()])];
  return html`<div class="options">
    <${Choice} label="Resource" value=${cluster.resources[options.resource]} onChange=${options.setResource}
      options=${cluster.resources.map((name) => [name, name])} />
    <${Choice} label="Group by" value=${options.groupKey} onChange=${options.setGroupKey}
      options=${[...keys.map((key) => [key, shortKey(key)]), ["", "nothing"]]} />
    <${Choice} label="Size" value=${options.sizeBy} onChange=${options.setSizeBy}
      options=${[
        ["capacity", "by capacity"],
        ["equal", "all equal"],
      ]} />
  </div>`;
}

function shortKey(key) {
  return key.includes("/") ? key.split("/").pop() : key;
}

export function Legend({ name }) {
  return html`<div class="legend">
    <span class="ramp" aria-hidden="true"></span><span>${name} requested, 0 to 100%</span>
    <span><span class="swatch cordoned" aria-hidden="true"></span> cordoned</span>
    <span><span class="swatch tainted" aria-hidden="true"></span> tainted</span>
  </div>`;
}

export function MapView({ moments, cluster, text, onText, chosen }) {
  const options = useMapOptions(cluster);
  const [shape, setShape] = useState("map");
  const { scene } = moments;
  const found = useMemo(() => find(cluster, scene.places, text), [cluster, scene, text]);
  const selected = chosen ? cluster.indexOfNode(chosen) : -1;
  const select = (node) => go(node >= 0 ? link("map", cluster.nodeNames[node]) : link("map"));
  const name = cluster.resources[options.resource];
  if (!cluster.nodeCount) return html`<${EmptyCluster} cluster=${cluster} />`;
  return html`<div class="map-view ${selected >= 0 ? "with-panel" : ""}">
    <h1 class="unseen">Cluster map</h1>
    <div class="toolbar">
      <${MapOptions} cluster=${cluster} options=${options} />
      <${NamespaceChoice} cluster=${cluster} text=${text} onText=${onText} />
      <${Switch} label="Show as" value=${shape} onChange=${setShape} options=${[
        ["map", "Map"],
        ["table", "Table"],
      ]} />
      ${
        found &&
        html`<p class="found-count" role="status">${foundSentence(found)}
        <button type="button" class="text" onClick=${() => onText("")}>clear</button></p>`
      }
    </div>
    <${Whole} scene=${scene} moments=${moments} />
    <div class="map-frame">
      ${
        shape === "map"
          ? html`<${ClusterMap}
            label="Nodes on the map; arrow keys move, Enter opens, plus and minus zoom" scene=${scene}
            resource=${options.resource} groupKey=${options.groupKey} sizeBy=${options.sizeBy} found=${found}
            selected=${selected} onSelect=${select} onOpen=${() => document.getElementById("node-panel")?.focus()}
            onOpenPod=${(pod) => go(podLink(cluster.podKey(pod)))} />`
          : html`<${NodeTable} scene=${scene} found=${found} groupKey=${options.groupKey} />`
      }
      ${shape === "map" && html`<${Legend} name=${name} />`}
    </div>
    ${selected >= 0 && html`<${NodePanel} scene=${scene} node=${selected} found=${found} />`}
    <${TimeStrip} moments=${moments} />
  </div>`;
}

function foundSentence(found) {
  const sum = (bytes) => bytes.reduce((a, b) => a + b, 0);
  return `${count(sum(found.nodes), "node")}, ${count(sum(found.pods), "pod")} found`;
}

function NamespaceChoice({ cluster, text, onText }) {
  const now = /(?:^|\s)ns:(\S+)/.exec(text)?.[1] ?? "";
  const names = cluster.namespaces();
  const choose = (name) => {
    const rest = text.replace(/(^|\s)ns:\S*/g, "").trim();
    onText(name ? `${rest} ns:${name}`.trim() : rest);
  };
  return html`<${Choice} label="Namespace" value=${names.includes(now) ? now : ""} onChange=${choose}
    options=${[["", "all"], ...names.map((name) => [name, name])]} />`;
}

// How full it all is, and what lies at anchor outside.
function Whole({ scene, moments }) {
  const { cluster } = scene;
  const waiting = scene.waiting();
  const reasons = moments.step === null ? topReasons(cluster) : [];
  return html`<div class="whole">
    <span class="fact"><strong>${cluster.nodeCount.toLocaleString("en")}</strong> nodes</span>
    <span class="fact"><strong>${scene.pods.length.toLocaleString("en")}</strong> pods placed</span>
    ${cluster.resources.slice(0, 4).map((name, r) => {
      const { share: part } = scene.whole(r);
      return part === null || name === "pods"
        ? null
        : html`<span class="fact"><strong>${share(part)}</strong> ${name}</span>`;
    })}
    <a class="anchor ${waiting ? "some" : ""}" href=${link("pending")}>
      <strong>${waiting.toLocaleString("en")}</strong> ${waiting === 1 ? "pod" : "pods"} pending
      ${reasons.length > 0 && html`<span class="why">${reasons.join(" · ")}</span>`}
    </a>
  </div>`;
}

function topReasons(cluster) {
  const counts = new Map();
  for (const row of cluster.pending())
    for (const plugin of row.plugins) counts.set(plugin, (counts.get(plugin) ?? 0) + 1);
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .map(([plugin, n]) => `${plugin} ${n}`);
}

function EmptyCluster({ cluster }) {
  return html`<div class="empty">
    <${Water} />
    <h1>No nodes</h1>
    <p>This cluster has no nodes${cluster.podCount ? `, and ${count(cluster.podCount, "pod is", "pods are")} pending` : ""}.
      Add the output of <code>kubectl get nodes -o yaml</code>, or add nodes under <a
        href=${link("whatif")}>What if</a>.</p>
  </div>`;
}

function Water() {
  return html`<svg viewBox="0 0 220 70"
    aria-hidden="true" focusable="false" fill="none" stroke="currentColor" stroke-width="2.500" stroke-linecap="round">
    <path d="M30 8h26M36 8l3 24M50 8l-3 24M26 34h34" stroke-width="5" />
    <path d="M58 16c40 30 80 18 104 26" />
    <path d="M4 50c12-6 20-6 30 0s20 6 30 0 20-6 30 0 20 6 30 0 20-6 30 0 20 6 30 0 20-6 32 0" />
    <path d="M34 63c12-6 20-6 30 0s20 6 30 0 20-6 30 0 20 6 30 0" />
  </svg>`;
}
