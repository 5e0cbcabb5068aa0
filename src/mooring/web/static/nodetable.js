// The map in words: every node that is shown, as a row.
import { useMemo } from "preact-hooks";
import { html } from "mooring/html";
import { Meter } from "mooring/parts";
import { link } from "mooring/route";
import { Table } from "mooring/table";
import { resourceName, share } from "mooring/words";

export function NodeTable({ scene, found, groupKey }) {
  const { cluster } = scene;
  const rows = useMemo(() => {
    const all = cluster
      .groups(groupKey)
      .flatMap(({ name, nodes }) => nodes.map((node) => ({ node, group: name })));
    return found ? all.filter((row) => found.nodes[row.node]) : all;
  }, [cluster, found, groupKey]);
  const columns = useMemo(() => columnsOf(scene, groupKey), [scene, groupKey]);
  return html`<${Table} label="Nodes" columns=${columns} rows=${rows} rowKey=${(row) => row.node} sortedBy="node"
    empty="No node matches." />`;
}

function columnsOf(scene, groupKey) {
  const { cluster } = scene;
  return [
    {
      key: "node",
      label: "Node",
      sort: (row) => cluster.nodeNames[row.node],
      cell: (row) =>
        html`<a href=${link("map", cluster.nodeNames[row.node])}>${cluster.nodeNames[row.node]}</a>`,
    },
    ...(groupKey
      ? [
          {
            key: "group",
            label: groupKey.split("/").pop(),
            title: groupKey,
            sort: (row) => row.group,
            cell: (row) => row.group,
          },
        ]
      : []),
    ...cluster.resources.map((name, r) => ({
      key: `r${r}`,
      label: resourceName(name),
      align: "number",
      downFirst: true,
      sort: (row) => (cluster.capacityOf(row.node, r) ? scene.utilisation(row.node, r) : null),
      cell: (row) =>
        cluster.capacityOf(row.node, r)
          ? html`<${Meter} label=${resourceName(name)}
            value=${scene.utilisation(row.node, r)} /><span class="share">${share(scene.utilisation(row.node, r))}</span>`
          : "–",
    })),
    {
      key: "count",
      label: "Number of pods",
      align: "number",
      downFirst: true,
      sort: (row) => scene.podsOn(row.node).length,
      cell: (row) => scene.podsOn(row.node).length,
    },
    {
      key: "marks",
      label: "Marks",
      sort: (row) => marksOf(cluster, row.node) || null,
      cell: (row) => marksOf(cluster, row.node),
    },
  ];
}

function marksOf(cluster, node) {
  return [...(cluster.isCordoned(node) ? ["cordoned"] : []), ...cluster.taintsOf(node)].join(", ");
}
