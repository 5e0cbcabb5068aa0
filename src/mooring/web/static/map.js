// The map as a part of the page: pointer, keyboard, what is said of the node under them, and to a screen reader.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact-hooks";
import { html } from "mooring/html";
import { Drawing } from "mooring/drawing";
import { neighbour } from "mooring/layout";
import { paletteOf } from "mooring/colour";
import { paintOf } from "mooring/paint";
import { useTheme } from "mooring/theme";
import { amount, count, resourceName, share } from "mooring/words";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function ClusterMap({
  label,
  scene,
  resource,
  groupKey,
  sizeBy,
  found,
  colour,
  beside,
  covered,
  selected,
  onSelect,
  onOpen,
  onOpenPod,
}) {
  const canvas = useRef(null);
  const box = useRef(null);
  const drawing = useRef(null);
  const [hover, setHover] = useState(null);
  const id = useId();
  const theme = useTheme();
  const palette = useMemo(() => paletteOf(theme), [theme]);
  const paint = useMemo(() => paintOf(scene.cluster, colour, palette), [scene.cluster, colour, palette]);

  useLayoutEffect(() => {
    const made = new Drawing(canvas.current);
    drawing.current = made;
    box.current.drawing = made;
    const fit = () => {
      const { clientWidth, clientHeight } = box.current;
      made.resize(clientWidth, clientHeight, Math.min(devicePixelRatio || 1, 2));
    };
    const watch = new ResizeObserver(fit);
    watch.observe(box.current);
    fit();
    return () => {
      watch.disconnect();
      made.close();
    };
  }, []);
  useLayoutEffect(() => {
    drawing.current.show({ scene, resource, groupKey, sizeBy, palette, found, paint, beside });
  }, [scene, resource, groupKey, sizeBy, palette, found, paint, beside]);
  useLayoutEffect(() => {
    drawing.current.select(selected);
  }, [selected]);
  usePointers(canvas, drawing, { setHover, onSelect, onOpenPod });

  const choose = (node) => {
    onSelect(node);
    drawing.current.reveal(node, covered ?? 0);
  };
  const onKeyDown = (event) => {
    const made = drawing.current;
    if (ARROWS[event.key]) {
      const [dx, dy] = ARROWS[event.key];
      const at =
        selected >= 0 ? neighbour(made.layout, selected, dx, dy, found?.nodes) : firstOf(made, found);
      if (at >= 0) choose(at);
    } else if (event.key === "Home") {
      const first = firstOf(made, found);
      if (first >= 0) choose(first);
    } else if (event.key === "Enter" && selected >= 0) onOpen?.(selected);
    else if (event.key === "+" || event.key === "=") made.zoom(1.5);
    else if (event.key === "-") made.zoom(1 / 1.5);
    else if (event.key === "0") made.fit();
    else if (event.key === "Escape") onSelect(-1);
    else return;
    event.preventDefault();
  };
  const current = selected >= 0 ? selected : 0;
  return html`<div class="map" ref=${box}>
    <canvas ref=${canvas} aria-hidden="true"></canvas>
    <div class="map-keys" role="listbox" tabindex="0" aria-label=${label} aria-activedescendant=${id}
      onKeyDown=${onKeyDown}>
      <span id=${id} role="option" class="unseen" aria-selected=${selected >= 0 ? "true" : "false"}>
        ${nodeSentence(scene, current)}</span>
    </div>
    ${hover && html`<${Bubble} scene=${scene} resource=${resource} hover=${hover} />`}
    <div class="zoom" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom in" title="Zoom in (+)"
        onClick=${() => drawing.current.zoom(1.6)}>+</button>
      <button type="button" aria-label="Zoom out" title="Zoom out (-)"
        onClick=${() => drawing.current.zoom(1 / 1.6)}>−</button>
      <button type="button" aria-label="Show all" title="Show all (0)"
        onClick=${() => drawing.current.fit()}>⤢</button>
    </div>
  </div>`;
}

function firstOf(drawing, found) {
  for (const block of drawing.layout.blocks) {
    for (const row of block.rows) {
      const first = row.nodes.find((node) => !found || found.nodes[node]);
      if (first !== undefined) return first;
    }
  }
  return -1;
}

function usePointers(canvas, drawing, handlers) {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    const element = canvas.current;
    const down = new Map();
    let dragged = false;
    const place = (event) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const onDown = (event) => {
      if (event.pointerType === "mouse") element.setPointerCapture(event.pointerId);
      element.nextElementSibling.focus({ preventScroll: true });
      down.set(event.pointerId, place(event));
      dragged = false;
    };
    const onMove = (event) => {
      const made = drawing.current;
      const [x, y] = place(event);
      if (!down.has(event.pointerId)) {
        if (event.pointerType === "mouse") point(made, x, y);
        return;
      }
      const [px, py] = down.get(event.pointerId);
      if (Math.hypot(x - px, y - py) > 3) dragged = true;
      if (!dragged) return;
      latest.current.setHover(null);
      if (down.size === 2) {
        const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        const grown =
          Math.hypot(x - other[0], y - other[1]) / (Math.hypot(px - other[0], py - other[1]) || 1);
        made.zoom(grown, (x + other[0]) / 2, (y + other[1]) / 2);
      } else made.pan(x - px, y - py);
      down.set(event.pointerId, [x, y]);
    };
    const point = (made, x, y) => {
      const node = made.nodeAt(x, y);
      made.hover(node);
      element.classList.toggle("over", node >= 0);
      latest.current.setHover(
        node < 0 ? null : { node, pod: made.podAt(node, x, y), x, y, width: made.width, height: made.height },
      );
    };
    const onUp = (event) => {
      const made = drawing.current;
      if (down.has(event.pointerId) && !dragged && down.size === 1) {
        const [x, y] = place(event);
        latest.current.onSelect(made.nodeAt(x, y), x > made.width / 2 ? "left" : "right");
      }
      down.delete(event.pointerId);
    };
    // The browser took the finger, to scroll the page.
    const onCancel = (event) => down.delete(event.pointerId);
    const onLeave = () => {
      drawing.current.hover(-1);
      latest.current.setHover(null);
    };
    const onWheel = (event) => {
      event.preventDefault();
      drawing.current.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...place(event));
    };
    const onDouble = (event) => {
      const [x, y] = place(event);
      const node = drawing.current.nodeAt(x, y);
      const pod = node >= 0 ? drawing.current.podAt(node, x, y) : -1;
      if (pod >= 0) latest.current.onOpenPod?.(pod);
      else drawing.current.zoom(2.2, x, y);
    };
    const listeners = {
      pointerdown: onDown,
      pointermove: onMove,
      pointerup: onUp,
      pointercancel: onCancel,
      pointerleave: onLeave,
      dblclick: onDouble,
    };
    for (const [name, listener] of Object.entries(listeners)) element.addEventListener(name, listener);
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      for (const [name, listener] of Object.entries(listeners)) element.removeEventListener(name, listener);
      element.removeEventListener("wheel", onWheel);
    };
  }, []);
}

// One node in a sentence, for those who hear the map.
export function nodeSentence(scene, node) {
  const { cluster } = scene;
  if (!cluster.nodeCount) return "no nodes";
  const parts = [cluster.nodeNames[node]];
  cluster.resources.forEach((name, r) => {
    if (cluster.capacityOf(node, r)) parts.push(`${resourceName(name)} ${share(scene.utilisation(node, r))}`);
  });
  parts.push(count(scene.podsOn(node).length, "pod"));
  if (cluster.isCordoned(node)) parts.push("cordoned");
  const taints = cluster.taintsOf(node);
  if (taints.length) parts.push(`${taints.length === 1 ? "taint" : "taints"} ${taints.join(", ")}`);
  return parts.join(", ");
}

function Bubble({ scene, resource, hover }) {
  const { cluster } = scene;
  const { node, pod, x, y, width, height } = hover;
  const name = cluster.resources[resource];
  const said = resourceName(name);
  const taints = cluster.taintsOf(node);
  const style = {
    [x > width - 270 ? "right" : "left"]: `${x > width - 270 ? width - x + 14 : x + 14}px`,
    [y > height - 150 ? "bottom" : "top"]: `${y > height - 150 ? height - y + 10 : y + 14}px`,
  };
  return html`<div class="bubble" style=${style} aria-hidden="true">
    <strong>${cluster.nodeNames[node]}</strong>
    <span>${!cluster.capacityOf(node, resource) ? `has no ${said} · ${count(scene.podsOn(node).length, "pod")}` : html`${said} ${amount(name, scene.requested(resource)[node])} of ${amount(name, cluster.capacityOf(node, resource))}
      ${" · "}${share(scene.utilisation(node, resource))} · ${count(scene.podsOn(node).length, "pod")}`}</span>
    ${cluster.isCordoned(node) && html`<span class="flag">cordoned</span>`}
    ${taints.length > 0 && html`<span class="flag">taint ${taints.join(", ")}</span>`}
    ${
      pod >= 0 &&
      html`<span
      class="of-pod">${cluster.podKey(pod)} · ${said} ${amount(name, cluster.requestOf(pod, resource))}</span>`
    }
  </div>`;
}
