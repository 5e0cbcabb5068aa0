// Virtual time: the map as it was, plots of how it went, and what happened when.
import { useMemo, useState } from "preact-hooks";
import { html } from "mooring/html";
import { ClusterMap } from "mooring/map";
import { paletteOf } from "mooring/colour";
import { momentAt } from "mooring/moment";
import { Choice, Problems } from "mooring/parts";
import { Plot } from "mooring/plot";
import { go, link, podLink, useQuery } from "mooring/route";
import { find } from "mooring/search";
import { Table } from "mooring/table";
import { TimeStrip } from "mooring/timestrip";
import { useTheme } from "mooring/theme";
import { Legend, MapOptions, useMapOptions } from "mooring/views/map";
import { clock, count, resourceName, share } from "mooring/words";

export function TimeView({ moments, cluster, text }) {
  const { scene, time, error } = moments;
  const options = useMapOptions(cluster);
  const [selected, setSelected] = useState(-1);
  const found = useMemo(() => find(scene, text), [scene, text]);
  if (error) return html`<${Problems} error=${error} />`;
  if (!time) return html`<p class="loading" role="status">Loading the timeline …</p>`;
  return html`<div class="time-view">
    <div class="title"><h1>Over time</h1>
      <p>${count(moments.steps, "change")} in ${clock(time.endSeconds)} of virtual time.</p></div>
    <${TimeStrip} moments=${moments} />
    ${
      cluster.nodeCount > 0 &&
      html`<div class="time-map">
        <div class="toolbar"><${MapOptions} cluster=${cluster} options=${options} /></div>
        <${ClusterMap} label="Nodes at this moment" scene=${scene} resource=${options.resource}
          groupKey=${options.groupKey}
        sizeBy=${options.sizeBy} colour=${options.colour} found=${found} selected=${selected} onSelect=${setSelected}
        onOpen=${(node) => go(link("map", cluster.nodeNames[node]))}
          onOpenPod=${(pod) => go(podLink(cluster.podKey(pod)))} />
        <${Legend} cluster=${cluster} options=${options} />
      </div>`
    }
    ${moments.steps > 0 && html`<${Plots} moments=${moments} cluster=${cluster} />`}
    <${Events} moments=${moments} cluster=${cluster} text=${text} />
  </div>`;
}

function Plots({ moments, cluster }) {
  const { bySeconds, reel, step, scene, time } = moments;
  const theme = useTheme();
  const palette = useMemo(() => paletteOf(theme), [theme]);
  const drawn = useMemo(() => plotsOf(reel, cluster, palette, bySeconds), [reel, cluster, palette, bySeconds]);
  const at = bySeconds ? moments.seconds : (step ?? reel.steps);
  const whole = (bySeconds ? time.endSeconds : reel.steps) || 1;
  const toMoment = (x) => moments.go(momentAt(moments, Math.max(0, x / whole)));
  const all = { at, bySeconds, palette, onGo: toMoment };
  const integer = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : "");
  const percent = (value) => `${Number((value * 100).toPrecision(2))}%`;
  const number = (n) => n?.toLocaleString("en") ?? "–";
  // The scene knows the moment itself; samples are taken now and then.
  const used = drawn.utilisation.series.map((each) => scene.whole(cluster.resources.indexOf(each.name)).share);
  return html`<section class="plots" aria-label="Plots over time">
    <${Plot} ...${all} ...${drawn.utilisation} title="Utilisation" now=${used} say=${share} format=${percent} shares />
    <${Plot} ...${all} ...${drawn.pending} title="Pending pods" now=${[scene.waiting()]} say=${number} format=${integer} />
    <${Plot} ...${all} ...${drawn.fragmentation} title="Fragmentation" say=${share} format=${percent} shares />
    <${Plot} ...${all} ...${drawn.preempted} title="Preempted so far" say=${number} format=${integer} />
    <p class="quiet">Click to go to a moment, drag to zoom, double click to show all.</p>
  </section>`;
}

// {xs, series} of each plot.
function plotsOf(reel, cluster, palette, bySeconds) {
  const { samples } = reel.time;
  const names = Object.keys(samples.resources)
    .filter((name) => name !== "pods" && cluster.resources.includes(name))
    .slice(0, 4);
  const of = (measure) => {
    const [xs, ...columns] = reel.sampled(names.map((name) => samples.resources[name][measure]), bySeconds);
    return { xs, series: names.map((name, i) => ({ name, label: resourceName(name), values: columns[i], colour: palette.series[i] })) };
  };
  const one = ([xs, values], label, colour) => ({ xs, series: [{ label, values, colour }] });
  const preempted = reel.preemptedOver(bySeconds) ?? reel.sampled([samples.preempted], bySeconds);
  return {
    utilisation: of("utilisation"),
    fragmentation: of("fragmentation"),
    pending: one(reel.waitingOver(bySeconds), "pending", palette.series[1]),
    preempted: one(preempted, "preempted", palette.series[4]),
  };
}

function Events({ moments, cluster, text }) {
  const { events } = moments.time;
  const [kind, setKind] = useQuery("kind", "", events.kinds);
  const found = useMemo(() => find(moments.scene, text), [moments.scene, text]);
  const { rows, together, total } = useMemo(() => {
    const wanted = events.kinds.indexOf(kind);
    const rows = [];
    for (let i = 0; i < events.step.length; i += 1) {
      if (kind && events.kind[i] !== wanted) continue;
      if (found && (events.pod[i] < 0 || !found.pods[events.pod[i]])) continue;
      rows.push(i);
    }
    return folded(rows, events, cluster);
  }, [events, kind, found, cluster]);
  const columns = useMemo(
    () => [
      {
        key: "at",
        label: "When",
        align: "number",
        sort: (i) => events.atSeconds[i] + i * 1e-9,
        cell: (i) => html`<button type="button" class="text"
          aria-label=${`Go to ${clock(events.atSeconds[i])}, ${events.kinds[events.kind[i]]}`}
        onClick=${() => moments.go({ step: Math.min(events.step[i], moments.steps), seconds: events.atSeconds[i] })}>${clock(events.atSeconds[i])}</button>`,
      },
      {
        key: "what",
        label: "What",
        sort: (i) => events.kinds[events.kind[i]],
        cell: (i) => events.kinds[events.kind[i]],
      },
      {
        key: "pod",
        label: "Pod",
        sort: (i) => (events.pod[i] < 0 ? null : cluster.podKey(events.pod[i])),
        cell: (i) =>
          together.get(i)
            ? html`gang <a href=${link("gang", ...cluster.gangOf(events.pod[i]).split("/"))}>${cluster.gangOf(events.pod[i])}</a>${" "}
              <span class="times">× ${together.get(i).length}</span>`
            : events.pod[i] < 0
            ? "–"
            : html`<a href=${podLink(cluster.podKey(events.pod[i]))}>${cluster.podKey(events.pod[i])}</a>`,
      },
      {
        key: "node",
        label: "Node",
        sort: (i) => cluster.nodeNames[events.node[i]] ?? null,
        cell: (i) => nodesOf(together.get(i) ?? [i], events, cluster),
      },
      {
        key: "message",
        label: "Message",
        cell: (i) => {
          const message = messageOf(together.get(i) ?? [i], events);
          return html`<span title=${message}>${message}</span>`;
        },
      },
    ],
    [events, cluster, together, moments.go],
  );
  return html`<section class="events" aria-labelledby="events-title">
    <div class="title"><h2 id="events-title">Timeline</h2>
      <p>${count(total, "event")}${events.leftOut ? `, and ${events.leftOut.toLocaleString("en")} more that are not listed` : ""}</p>
      <${Choice} label="Kind" value=${kind} onChange=${setKind}
        options=${[["", "all"], ...events.kinds.map((each) => [each, each])]} /></div>
    <${Table} label="Events" columns=${columns} rows=${rows} rowKey=${(i) => i} sortIn="sort"
      rowClass=${(i) => (events.step[i] === moments.step ? "lit" : "")} empty="No such events." />
  </section>`;
}

// What happens to pods of a gang at one moment is one row. `together`: the first event of it → all of them.
function folded(indices, events, cluster) {
  const together = new Map();
  const total = indices.length;
  if (!cluster.gangs().size) return { rows: indices, together, total };
  const rows = [];
  let [before, last] = [null, ""];
  for (const i of indices) {
    const gang = events.pod[i] < 0 ? "" : cluster.gangOf(events.pod[i]);
    const what = gang && `${gang} ${events.kind[i]} ${events.atSeconds[i]}`;
    if (what && what === last) {
      if (!together.has(before)) together.set(before, [before]);
      together.get(before).push(i);
    } else {
      rows.push(i);
      [before, last] = [i, what];
    }
  }
  return { rows, together, total };
}

function messageOf(indices, events) {
  const messages = [...new Set(indices.map((i) => events.strings[events.message[i]]))];
  return messages.length > 1 ? `${messages[0]} (and ${count(messages.length - 1, "other message")})` : messages[0];
}

function nodesOf(indices, events, cluster) {
  const names = [...new Set(indices.map((i) => cluster.nodeNames[events.node[i]]).filter(Boolean))];
  if (!names.length) return "–";
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
}
