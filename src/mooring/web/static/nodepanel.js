// One node: how full it is, what it is like, what runs on it, and what could be tried with it.
import { useEffect, useMemo, useRef } from "preact-hooks";
import { isReport } from "mooring/api";
import { html } from "mooring/html";
import { NodeDevices } from "mooring/devices";
import { Few, Usage } from "mooring/parts";
import { go, link, podLink } from "mooring/route";
import { Table } from "mooring/table";
import { amount, count, resourceName } from "mooring/words";

export function NodePanel({ scene, node, found, side = "right" }) {
  const { cluster } = scene;
  const name = cluster.nodeNames[node];
  const pods = useMemo(() => Array.from(scene.podsOn(node)), [scene, node]);
  const labels = cluster.nodeLabels(node).map(([key, value]) => `${key}=${value}`);
  const taints = cluster.taintsOf(node);
  const columns = useMemo(() => columnsOf(cluster, pods), [cluster, pods]);
  const panel = useRef(null);
  // Where the panel lies below the map, it comes into sight.
  useEffect(() => {
    const { top, bottom } = panel.current.getBoundingClientRect();
    if (top > innerHeight - 80 || bottom < 80) panel.current.scrollIntoView({ block: "nearest" });
  }, [node]);
  return html`<aside class=${`panel ${side}`} id="node-panel" ref=${panel} tabindex="-1" aria-label=${`Node ${name}`}>
    <header><h2>${name}</h2>
      <button type="button" class="plain" aria-label="Close" onClick=${() => go(link("map"))}>✕</button></header>
    ${cluster.isCordoned(node) && html`<p class="flag">Cordoned: the scheduler places no new pods here.</p>`}
    ${taints.map((taint) => html`<p class="flag">Taint <code>${taint}</code></p>`)}
    <${Usage} scene=${scene} node=${node} />
    <p class="chips"><${Few} items=${labels} most=${5} /></p>
    ${
      !isReport &&
      html`<p class="actions">
      <a class="button" href=${link("whatif", "Node", name)}>Edit and try</a>
      <a class="button" href=${link("whatif", "without", name)}>Try without it</a>
    </p>`
    }
    <${NodeDevices} cluster=${cluster} node=${node} />
    <h3>${count(pods.length, "pod")}</h3>
    ${
      pods.length > 0 &&
      html`<${Table} label=${`Pods on ${name}`} columns=${columns} rows=${pods}
      rowKey=${(pod) => pod} sortedBy="cpu" descending
      rowClass=${(pod) => (found?.pods[pod] ? "lit" : "")} />`
    }
  </aside>`;
}

// There is little room, so what is 0 for all of the pods is left out.
function columnsOf(cluster, pods) {
  const asked = (r) => pods.some((pod) => cluster.requestOf(pod, r));
  return [
    {
      key: "pod",
      label: "Pod",
      sort: (pod) => cluster.podKey(pod),
      cell: (pod) => html`<a href=${podLink(cluster.podKey(pod))} title=${cluster.podKey(pod)}>${cluster.podKey(pod)}</a>`,
    },
    ...cluster.resources
      .filter((name, r) => name !== "pods" && asked(r))
      .slice(0, 3)
      .map((name) => {
        const r = cluster.resources.indexOf(name);
        return {
          key: name,
          label: resourceName(name),
          align: "number",
          downFirst: true,
          sort: (pod) => cluster.requestOf(pod, r),
          cell: (pod) => amount(name, cluster.requestOf(pod, r)),
        };
      }),
    ...(pods.some((pod) => cluster.map.pods.priority[pod])
      ? [
          {
            key: "priority",
            label: "Priority",
            align: "number",
            downFirst: true,
            sort: (pod) => cluster.map.pods.priority[pod],
            cell: (pod) => cluster.map.pods.priority[pod],
          },
        ]
      : []),
  ];
}
