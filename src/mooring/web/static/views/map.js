// The cluster as a whole: the map or its table, what waits outside, and the node that was chosen.
import { useLayoutEffect, useMemo, useRef, useState } from "preact-hooks";
import { paletteOf } from "mooring/colour";
import { html } from "mooring/html";
import { ClusterMap } from "mooring/map";
import { NodePanel } from "mooring/nodepanel";
import { NodeTable } from "mooring/nodetable";
import { Choice, Switch } from "mooring/parts";
import { go, link, podLink, useQuery } from "mooring/route";
import { foundSentence } from "mooring/finder";
import { fieldIn, find, withField } from "mooring/search";
import { paintOf, paintsFor } from "mooring/paint";
import { fateOf, rejectionsOf } from "mooring/pending";
import { useTheme } from "mooring/theme";
import { TimeStrip } from "mooring/timestrip";
import { count, resourceName, share } from "mooring/words";

const NOTHING = "-";

export function useMapOptions(cluster) {
  const [resource, setResource] = useQuery("resource", cluster?.mainResource() ?? "cpu");
  const keys = cluster ? [NOTHING, ...groupKeysOf(cluster)] : null;
  const [groupKey, setGroupKey] = useQuery("group", cluster?.map.groupBy || NOTHING, keys);
  const [sizeBy, setSizeBy] = useQuery("size", "capacity", ["capacity", "equal"]);
  const paints = cluster ? paintsFor(cluster).map(([key]) => key) : null;
  const [colour, setColour] = useQuery("colour", "utilisation", paints);
  const index = Math.max(0, cluster ? cluster.resources.indexOf(resource) : 0);
  return {
    resource: index,
    setResource,
    sizeBy,
    setSizeBy,
    // An empty word would be left out of the address, so grouping by nothing has a name.
    setGroupKey: (key) => setGroupKey(key || NOTHING),
    groupKey: groupKey === NOTHING ? "" : groupKey,
    colour,
    setColour,
  };
}

export function MapOptions({ cluster, options }) {
  const keys = groupKeysOf(cluster);
  return html`<div class="options">
    <${Choice} label="Resource" value=${cluster.resources[options.resource]} onChange=${options.setResource}
      options=${cluster.resources.map((name) => [name, resourceName(name)])} />
    <${Choice} label="Group by" value=${options.groupKey} onChange=${options.setGroupKey}
      options=${[...keys.map((key) => [key, shortKey(key, keys)]), ["", "nothing"]]} />
    <${Choice} label="Size" value=${options.sizeBy} onChange=${options.setSizeBy}
      options=${[
        ["capacity", "by capacity"],
        ["equal", "all equal"],
      ]} />
    <${Choice} label="Colour" value=${options.colour} onChange=${options.setColour} options=${paintsFor(cluster)} />
  </div>`;
}

function groupKeysOf(cluster) {
  return [...new Set([...cluster.map.groupKeys, ...cluster.nodeLabelKeys()])];
}

// Without its prefix, unless another key ends like it.
function shortKey(key, keys) {
  const end = (each) => each.split("/").pop();
  return keys.filter((each) => end(each) === end(key)).length > 1 ? key : end(key);
}

export function Legend({ cluster, options }) {
  const theme = useTheme();
  const paint = useMemo(() => paintOf(cluster, options.colour, paletteOf(theme)), [cluster, options.colour, theme]);
  const name = resourceName(cluster.resources[options.resource]);
  const lacking = cluster.map.nodes.allocatable[options.resource].some((amount) => !amount);
  return html`<div class="legend">
    ${
      paint
        ? paint.legend.map(
            ([text, colour]) => html`<span><span class="swatch" style=${{ background: colour }}
        aria-hidden="true"></span> ${text}</span>`,
          )
        : html`<span class="ramp" aria-hidden="true"></span><span>${name} requested, 0 to 100%</span>`
    }
    ${lacking && html`<span><span class="swatch none" aria-hidden="true"></span> has no ${name}</span>`}
    <span><span class="swatch cordoned" aria-hidden="true"></span> cordoned</span>
    <span><span class="swatch tainted" aria-hidden="true"></span> tainted</span>
  </div>`;
}

// How much of the map the panel of a node covers.
const PANEL = 490;

export function MapView({ moments, cluster, text, onText, chosen }) {
  const options = useMapOptions(cluster);
  const [shape, setShape] = useQuery("show", "map", ["map", "table"]);
  const [side, setSide] = useState("right");
  const { scene } = moments;
  const found = useMemo(() => find(scene, text), [scene, text]);
  const selected = chosen ? cluster.indexOfNode(chosen) : -1;
  // The panel opens where it does not cover the node, and the map stays as it is.
  const select = (node, at = "right") => {
    setSide(at);
    go(node >= 0 ? link("map", cluster.nodeNames[node]) : link("map"));
  };
  useEscape(selected >= 0, () => {
    go(link("map"));
    // Who was in the panel is on the map again.
    document.querySelector(".map-keys")?.focus({ preventScroll: true });
  });
  if (!cluster.nodeCount) return html`<${EmptyCluster} cluster=${cluster} />`;
  return html`<div class="map-view">
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
        html`<p class="found-count" role="status">${foundSentence(scene, text)}${" "}
        <button type="button" class="text" onClick=${() => onText("")}>clear</button></p>`
      }
    </div>
    <${Whole} scene=${scene} moments=${moments} />
    <${Gangs} scene=${scene} text=${text} onText=${onText} />
    ${chosen && selected < 0 && html`<${NoSuchNode} name=${chosen} />`}
    <div class="map-frame">
      ${
        shape === "map"
          ? html`<${ClusterMap}
            label="Nodes on the map; arrow keys move, Enter opens, plus and minus zoom" scene=${scene}
            resource=${options.resource} groupKey=${options.groupKey} sizeBy=${options.sizeBy} found=${found}
            colour=${options.colour} covered=${PANEL} selected=${selected} onSelect=${select}
            onOpen=${() => document.getElementById("node-panel")?.focus()}
            onOpenPod=${(pod) => go(podLink(cluster.podKey(pod)))} />`
          : html`<${NodeTable} scene=${scene} found=${found} groupKey=${options.groupKey} />`
      }
      ${shape === "map" && html`<${Legend} cluster=${cluster} options=${options} />`}
      ${selected >= 0 && html`<${NodePanel} scene=${scene} node=${selected} found=${found} side=${side} />`}
    </div>
    <${TimeStrip} moments=${moments} />
  </div>`;
}

function NoSuchNode({ name }) {
  return html`<p class="problems" role="alert">There is no node “${name}” in this run.${" "}
    <a href=${link("map")}>Show the map</a></p>`;
}

function useEscape(active, onEscape) {
  const latest = useRef(onEscape);
  latest.current = onEscape;
  // Before the panel is painted: whoever sees it can close it.
  useLayoutEffect(() => {
    if (!active) return undefined;
    const onKey = (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (event.target.closest?.("input, textarea, select")) return;
      latest.current();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [active]);
}

// There may be thousands of namespaces: a list of all of them would make the whole view slow.
const MOST_NAMESPACES = 300;
const MORE = "…";

function NamespaceChoice({ cluster, text, onText }) {
  const asked = fieldIn(text, "ns");
  const names = cluster.namespaces();
  const now = names.includes(asked) ? asked : "";
  const listed = names.slice(0, MOST_NAMESPACES);
  if (now && !listed.includes(now)) listed.push(now);
  const more = names.length - listed.length;
  const choose = (name) => {
    onText(name === MORE ? `${withField(text, "ns", "")} ns:`.trim() : withField(text, "ns", name));
    if (name === MORE) document.getElementById("find").focus();
  };
  return html`<${Choice} label="Namespace" value=${now} onChange=${choose}
    options=${[["", "all"], ...listed.map((name) => [name, name]), ...(more > 0 ? [[MORE, `${more.toLocaleString("en")} more: write ns:NAME`]] : [])]} />`;
}

// How full it all is, and what lies at anchor outside.
function Whole({ scene, moments }) {
  const { cluster } = scene;
  const waiting = scene.waiting();
  const reasons = useMemo(
    () => (moments.underWay ? [] : rejectionsOf(scene.pending()).slice(0, 2)),
    [moments.underWay, scene],
  );
  return html`<div class="whole">
    <span class="fact"><strong>${cluster.nodeCount.toLocaleString("en")}</strong> ${cluster.nodeCount === 1 ? "node" : "nodes"}</span>
    <span class="fact"><strong>${scene.pods.length.toLocaleString("en")}</strong> ${scene.pods.length === 1 ? "pod" : "pods"} on nodes</span>
    ${cluster.resources.slice(0, 4).map((name, r) => {
      const { share: part } = scene.whole(r);
      return part === null || name === "pods"
        ? null
        : html`<span class="fact"><strong>${share(part)}</strong> ${resourceName(name)}</span>`;
    })}
    <a class="anchor ${waiting ? "some" : ""}" href=${link("pending")}>
      <strong>${waiting.toLocaleString("en")}</strong> ${waiting === 1 ? "pod" : "pods"} pending
      ${reasons.length > 0 && html`<span class="why">${reasons.map(({ name }) => name).join(" · ")}</span>`}
    </a>
  </div>`;
}

// Each gang as one thing: how much of it has a node, and by a click where on the map it is.
const MOST_GANGS = 12;

function Gangs({ scene, text, onText }) {
  const gangs = [...scene.cluster.gangs().values()];
  const chosen = fieldIn(text, "gang");
  if (!gangs.length) return null;
  return html`<p class="gangs" aria-label="Gangs">
    ${gangs.slice(0, MOST_GANGS).map((gang) => {
      const { placed, waiting } = fateOf(gang, scene);
      const name = gang.name;
      return html`<button type="button" class=${`gang ${waiting ? "some" : ""}`} key=${name}
        aria-pressed=${name.toLowerCase() === chosen ? "true" : "false"}
        onClick=${() => onText(withField(text, "gang", name.toLowerCase() === chosen ? "" : name))}>
        ${name} <strong>${placed}</strong> of ${gang.pods.length}${waiting ? " · waits" : ""}</button>`;
    })}
    ${gangs.length > MOST_GANGS && html`<span class="quiet">and ${gangs.length - MOST_GANGS} more; look for gang:NAME</span>`}
  </p>`;
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
