// The cluster on a canvas: quays, berths, what lies in them, and what is marked. Knows nothing of events.
//
// While the view moves, the last full picture is moved along with it; it is drawn again once the view rests,
// or at once if that is little work. So 50,000 pods stay out of the way of a finger.
import { layOut, nodeAt, podRects } from "mooring/layout";
import { inkOn, stepOf } from "mooring/colour";

// Of a quay's head: where there is less, quays have no names.
const NAMED_FROM = 10;
const NAMES_FROM = 54;
const PODS_FROM = 15;
const POD_NAMES_FROM = 110;
const MARKS_FROM = 6;
const CHEAP = 6000;
const REST_MS = 90;
const DEEPEST = 60;

export class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.still = document.createElement("canvas");
    this.view = { k: 1, x: 0, y: 0 };
    this.selected = -1;
    this.hovered = -1;
    this.found = null;
    this.layout = null;
    this.podCache = new Map();
    this.frame = 0;
    this.rest = 0;
    // How often it was drawn in full, for whoever waits for that.
    this.pictures = 0;
  }

  close() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
  }

  resize(width, height, ratio) {
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    Object.assign(this, { width, height, ratio });
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
    }
    this.#layOut();
  }

  // Everything that the picture is of. `paint` colours pods by what they are, null colours nodes by how full they are;
  // `beside` is another cluster that is drawn next to this one, so that both lay out the same.
  show({ scene, resource, groupKey, sizeBy, palette, found, paint = null, beside = null }) {
    const before = this.shown;
    this.shown = { scene, resource, groupKey, sizeBy, palette, found, paint, beside };
    const moved =
      !before ||
      before.scene.cluster !== scene.cluster ||
      before.beside !== beside ||
      before.groupKey !== groupKey ||
      before.sizeBy !== sizeBy ||
      (sizeBy === "capacity" && before.resource !== resource);
    if (!before || before.scene !== scene || before.resource !== resource) this.podCache.clear();
    if (moved) this.#layOut();
    else this.redraw();
  }

  #layOut() {
    if (!this.shown || !this.width) return;
    const { scene, resource, groupKey, sizeBy, beside } = this.shown;
    const { cluster } = scene;
    this.layout = layoutOf(cluster, beside, { resource, sizeBy, groupKey, width: this.width, height: this.height });
    this.redraw();
  }

  // Pictures

  redraw() {
    this.stale = true;
    this.#schedule();
  }

  #schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#drawFrame();
    });
  }

  #drawFrame() {
    if (!this.layout) return;
    if (this.stale || this.#isCheap()) this.#drawStill();
    this.#moveStill();
    this.#drawPointers();
  }

  // By how much there would be in sight.
  #isCheap() {
    const { k } = this.view;
    const pods = this.layout.unit * k >= PODS_FROM ? this.shown.scene.pods.length : 0;
    return this.moved && (this.layout.xs.length + pods) / (k * k) < CHEAP;
  }

  #drawStill() {
    clearTimeout(this.rest);
    this.stale = false;
    this.moved = false;
    this.pictures += 1;
    this.canvas.dataset.pictures = this.pictures;
    this.drawnView = { ...this.view };
    const context = this.still.getContext("2d", { alpha: false });
    const { k, x, y } = this.view;
    const { palette } = this.shown;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = palette.water;
    context.fillRect(0, 0, this.still.width, this.still.height);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.#drawQuays(context, k, x, y);
    this.#drawNodes(context, k, x, y);
  }

  #drawQuays(context, k, x, y) {
    const { palette } = this.shown;
    const { head } = this.layout;
    context.font = `600 ${head < 20 ? 10 : 12}px ${fontOf(this.canvas)}`;
    context.textBaseline = "middle";
    for (const block of this.layout.blocks) {
      const [left, top] = [block.x * k + x + 2, block.y * k + y + 2];
      const [wide, high] = [block.w * k - 4, block.h * k - 4];
      if (left > this.width || top > this.height || left + wide < 0 || top + high < 0) continue;
      context.fillStyle = palette.pontoon;
      if (head < NAMED_FROM) {
        context.fillRect(left, top, wide, high);
        continue;
      }
      context.beginPath();
      context.roundRect(left, top, wide, high, 5);
      context.fill();
      const text = `${block.name}`;
      const more = `${block.nodes.length.toLocaleString("en")}`;
      const lineY = top + (head < 20 ? 6 : 12);
      const stuck = Math.max(left + 8, 8);
      context.fillStyle = palette.ink;
      const room = left + wide - stuck - 8;
      // The name matters more than how many there are.
      const name = shortened(context, text, room);
      if (name) {
        context.fillText(name, stuck, Math.max(lineY, 6));
        const used = context.measureText(name).width;
        context.fillStyle = palette.quiet;
        if (room > used + 12 + context.measureText(more).width) context.fillText(more, stuck + used + 8, Math.max(lineY, 6));
      }
    }
  }

  #drawNodes(context, k, x, y) {
    const { scene, resource, palette, found, paint } = this.shown;
    const { xs, ys, ss } = this.layout;
    const parts = scene.utilisations(resource);
    const capacities = scene.cluster.map.nodes.allocatable[resource];
    const buckets = new Map();
    const dim = [];
    const none = [];
    for (let node = 0; node < xs.length; node += 1) {
      const [left, top, side] = [xs[node] * k + x, ys[node] * k + y, ss[node] * k];
      if (!side || left > this.width || top > this.height || left + side < 0 || top + side < 0) continue;
      if (found && !found.nodes[node]) {
        dim.push(node);
        continue;
      }
      if (!capacities[node]) {
        none.push(node);
        continue;
      }
      const step = stepOf(parts[node]);
      if (!buckets.has(step)) buckets.set(step, []);
      buckets.get(step).push(node);
    }
    const box = (node) => [xs[node] * k + x, ys[node] * k + y, ss[node] * k];
    context.globalAlpha = 0.35;
    context.fillStyle = palette.line;
    for (const node of dim) {
      const [left, top, side] = box(node);
      context.fillRect(left, top, side, side);
    }
    context.globalAlpha = 1;
    for (const node of none) this.#drawNone(context, ...box(node));
    const all = [...buckets.values()].flat();
    context.fillStyle = palette.empty;
    for (const node of all) {
      const [left, top, side] = box(node);
      context.fillRect(left, top, side, side);
    }
    for (const [step, nodes] of buckets) {
      context.fillStyle = palette.ramp[step];
      for (const node of nodes) {
        const [left, top, side] = box(node);
        if (paint) context.fillStyle = paint.colourOfNode(scene, node, resource);
        const fill = Math.min(1, parts[node]) * side;
        // A berth that is too small to show how full it is shows it by its colour alone.
        const high = side < MARKS_FROM && fill > 0 ? side : fill;
        context.fillRect(left, top + side - high, side, high);
      }
    }
    for (const node of all) {
      const [left, top, side] = box(node);
      if (side >= PODS_FROM) this.#drawPods(context, node, left, top, side);
    }
    for (const node of [...all, ...none]) {
      const [left, top, side] = box(node);
      this.#drawMarks(context, node, left, top, side);
      if (side >= NAMES_FROM) this.#drawName(context, node, left, top, side);
    }
  }

  // A node that has none of the resource is not one that is empty.
  #drawNone(context, left, top, side) {
    const { palette } = this.shown;
    context.strokeStyle = palette.strongLine;
    context.lineWidth = 1;
    context.setLineDash(side > 16 ? [3, 3] : [1, 1]);
    context.strokeRect(left + 0.5, top + 0.5, Math.max(side - 1, 1), Math.max(side - 1, 1));
    context.setLineDash([]);
  }

  #drawPods(context, node, left, top, side) {
    const { scene, palette, found, paint } = this.shown;
    const rects = this.podsIn(node);
    const pods = scene.podsOn(node);
    if (paint) {
      for (let i = 0; i < rects.length; i += 4) {
        context.fillStyle = paint.colourOf(pods[i / 4]);
        context.fillRect(left + rects[i] * side, top + rects[i + 1] * side, rects[i + 2] * side, rects[i + 3] * side);
      }
    }
    if (found) this.#dimOthers(context, rects, pods, found.pods, left, top, side);
    context.fillStyle = palette.gap;
    const line = side > 60 ? 1.5 : side > 28 ? 1 : 0.6;
    for (let i = 0; i < rects.length; i += 4) {
      const [px, py] = [left + rects[i] * side, top + rects[i + 1] * side];
      const [pw, ph] = [rects[i + 2] * side, rects[i + 3] * side];
      if (pw < 1.6 || ph < 1.6) continue;
      if (rects[i] > 0.001) context.fillRect(px, py, line, ph);
      if (rects[i + 1] > 0.001) context.fillRect(px, py, pw, line);
      if (found && found.pods[pods[i / 4]]) {
        context.strokeStyle = palette.select;
        context.lineWidth = Math.min(pw, ph) < 16 ? 1 : 2;
        context.strokeRect(px + 1.5, py + 1.5, pw - 2.5, ph - 2.5);
      }
    }
    if (side >= POD_NAMES_FROM) this.#drawPodNames(context, node, left, top, side);
  }

  // Where some pods of a node are found, the others step back.
  #dimOthers(context, rects, pods, lit, left, top, side) {
    if (!pods.some((pod) => lit[pod])) return;
    context.globalAlpha = 0.66;
    context.fillStyle = this.shown.palette.empty;
    for (let i = 0; i < rects.length; i += 4) {
      if (lit[pods[i / 4]]) continue;
      context.fillRect(left + rects[i] * side, top + rects[i + 1] * side, rects[i + 2] * side, rects[i + 3] * side);
    }
    context.globalAlpha = 1;
  }

  // At the foot of each pod that has room for it, so that it does not meet the node's own name.
  #drawPodNames(context, node, left, top, side) {
    const { scene, resource, palette, paint, found } = this.shown;
    const rects = this.podsIn(node);
    const behind = palette.ramp[stepOf(scene.utilisations(resource)[node])];
    context.font = `10px ${fontOf(this.canvas)}`;
    scene.podsOn(node).forEach((pod, k) => {
      const [x, y, w, h] = rects.subarray(k * 4, k * 4 + 4);
      if (w * side < 58 || h * side < 34 || (found && !found.pods[pod])) return;
      context.fillStyle = inkOn(paint ? paint.colourOf(pod) : behind);
      const name = shortened(context, scene.cluster.map.pods.name[pod], w * side - 10);
      context.fillText(name, left + x * side + 5, top + (y + h) * side - 9);
    });
  }

  // Flat x, y, w, h in a berth of side 1, for the pods as the scene lists them.
  podsIn(node) {
    if (!this.podCache.has(node)) {
      const { scene, resource } = this.shown;
      const { cluster } = scene;
      const amounts = Array.from(scene.podsOn(node), (pod) => cluster.requestOf(pod, resource));
      this.podCache.set(node, podRects(amounts, cluster.capacityOf(node, resource)));
    }
    return this.podCache.get(node);
  }

  #drawMarks(context, node, left, top, side) {
    const { scene, palette } = this.shown;
    const { cluster } = scene;
    if (cluster.isCordoned(node)) {
      context.save();
      context.beginPath();
      context.rect(left, top, side, side);
      context.clip();
      context.strokeStyle = palette.cordon;
      context.globalAlpha = 0.7;
      context.lineWidth = side > 24 ? 1.5 : 1;
      const apart = Math.max(4, side / 5);
      context.beginPath();
      for (let d = apart / 2; d < side * 2; d += apart) {
        context.moveTo(left + d, top);
        context.lineTo(left + d - side, top + side);
      }
      context.stroke();
      context.restore();
    }
    if (cluster.taintsOf(node).length && side >= MARKS_FROM - 1) {
      const notch = Math.max(4, Math.min(14, side * 0.32));
      context.fillStyle = palette.mark;
      context.beginPath();
      context.moveTo(left + side - notch, top);
      context.lineTo(left + side, top);
      context.lineTo(left + side, top + notch);
      context.fill();
      context.strokeStyle = palette.gap;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(left + side - notch - 0.5, top);
      context.lineTo(left + side, top + notch + 0.5);
      context.stroke();
    }
  }

  #drawName(context, node, left, top, side) {
    const { scene, palette } = this.shown;
    context.font = `500 10.5px ${fontOf(this.canvas)}`;
    const room = side - (scene.cluster.taintsOf(node).length ? 22 : 8);
    const name = ending(context, scene.cluster.shortNames()[node], room);
    // On a plate of its own, so that it can be read whatever is behind it.
    context.fillStyle = palette.empty;
    context.fillRect(left + 2, top + 2, context.measureText(name).width + 6, 16);
    context.fillStyle = palette.ink;
    context.fillText(name, left + 5, top + 10.5);
  }

  #moveStill() {
    const { k, x, y } = this.view;
    const drawn = this.drawnView;
    const context = this.context;
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (k === drawn.k && x === drawn.x && y === drawn.y) {
      context.drawImage(this.still, 0, 0);
      return;
    }
    const scale = k / drawn.k;
    context.fillStyle = this.shown.palette.water;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = true;
    context.drawImage(
      this.still,
      (x - drawn.x * scale) * this.ratio,
      (y - drawn.y * scale) * this.ratio,
      this.still.width * scale,
      this.still.height * scale,
    );
  }

  #drawPointers() {
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const { palette } = this.shown;
    if (this.hovered >= 0) this.#outline(context, this.hovered, palette.ink, 1.5);
    if (this.selected >= 0) this.#outline(context, this.selected, palette.select, 3);
  }

  #outline(context, node, colour, width) {
    const { k, x, y } = this.view;
    const { xs, ys, ss } = this.layout;
    if (!ss[node]) return;
    context.strokeStyle = colour;
    context.lineWidth = width;
    const out = width / 2 + 0.5;
    context.strokeRect(
      xs[node] * k + x - out,
      ys[node] * k + y - out,
      ss[node] * k + 2 * out,
      ss[node] * k + 2 * out,
    );
  }

  // The view

  pointAt(left, top) {
    const { k, x, y } = this.view;
    return [(left - x) / k, (top - y) / k];
  }

  nodeAt(left, top) {
    return this.layout ? nodeAt(this.layout, ...this.pointAt(left, top)) : -1;
  }

  podAt(node, left, top) {
    const { xs, ys, ss } = this.layout;
    if (ss[node] * this.view.k < PODS_FROM) return -1;
    const [px, py] = this.pointAt(left, top);
    const [ux, uy] = [(px - xs[node]) / ss[node], (py - ys[node]) / ss[node]];
    const rects = this.podsIn(node);
    for (let i = 0; i < rects.length; i += 4) {
      const inside =
        ux >= rects[i] &&
        ux <= rects[i] + rects[i + 2] &&
        uy >= rects[i + 1] &&
        uy <= rects[i + 1] + rects[i + 3];
      if (inside) return this.shown.scene.podsOn(node)[i / 4];
    }
    return -1;
  }

  boxOf(node) {
    const { k, x, y } = this.view;
    const { xs, ys, ss } = this.layout;
    return { left: xs[node] * k + x, top: ys[node] * k + y, side: ss[node] * k };
  }

  pan(dx, dy) {
    const { k, x, y } = this.view;
    this.#moveTo({ k, x: x + dx, y: y + dy });
  }

  zoom(factor, left = this.width / 2, top = this.height / 2) {
    const k = Math.max(1, Math.min(DEEPEST, this.view.k * factor));
    const turn = k / this.view.k;
    this.#moveTo({ k, x: left - (left - this.view.x) * turn, y: top - (top - this.view.y) * turn });
  }

  fit() {
    this.#moveTo({ k: 1, x: 0, y: 0 });
  }

  // Brings a node into sight; what lies under a panel at the right is not.
  reveal(node, covered = 0) {
    const { left, top, side } = this.boxOf(node);
    const margin = 20;
    const dx = Math.max(0, margin - left) + Math.min(0, this.width - covered - margin - left - side);
    const dy = Math.max(0, margin - top) + Math.min(0, this.height - margin - top - side);
    if (dx || dy) this.pan(dx, dy);
  }

  #moveTo({ k, x, y }) {
    const before = this.view;
    const within = (at, size) => Math.min(0, Math.max(size * (1 - k), at));
    this.view = { k, x: within(x, this.width), y: within(y, this.height) };
    // Nothing to draw, as at an edge.
    if (before.k === k && before.x === this.view.x && before.y === this.view.y) return;
    // While all is shown, a finger scrolls the page; once it is zoomed, it moves the map.
    this.canvas.style.touchAction = k > 1 ? "none" : "pan-x pan-y";
    this.moved = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.redraw(), REST_MS);
    this.#schedule();
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.#schedule();
  }

  select(node) {
    if (node === this.selected) return;
    this.selected = node;
    this.#schedule();
  }
}

// Who goes back to a layout gets it at once: the last ones are kept with their cluster.
const layouts = new WeakMap();
const MOST_LAYOUTS = 12;

function layoutOf(cluster, beside, how) {
  if (!layouts.has(cluster)) layouts.set(cluster, []);
  const kept = layouts.get(cluster);
  const key = JSON.stringify(how);
  const known = kept.find((each) => each.key === key && each.beside === beside);
  if (known) return known.layout;
  const layout = laidOut(cluster, beside, how);
  kept.push({ key, beside, layout });
  if (kept.length > MOST_LAYOUTS) kept.shift();
  return layout;
}

function laidOut(cluster, beside, { resource, sizeBy, groupKey, width, height }) {
  const roster = rosterOf(cluster, beside, resource, sizeBy, groupKey);
  const { sides } = roster;
  const groups = roster.groups.map(({ name, nodes }) => ({
    name,
    nodes: [...nodes].sort((a, b) => sides[b] - sides[a] || a - b),
  }));
  const layout = layOut(groups, sides, width, height);
  return beside ? ofCluster(layout, cluster, roster) : layout;
}

// The nodes to lay out, those of the other cluster too: {groups, sides, names}.
function rosterOf(cluster, beside, resource, sizeBy, groupKey) {
  const groups = cluster.groups(groupKey);
  const sides = sidesOf(cluster, resource, sizeBy);
  if (!beside || !groups.length) return { groups, sides, names: cluster.nodeNames };
  // The same order for both: by name.
  const [first, second] = [cluster, beside].sort((a, b) => a.nodeCount - b.nodeCount);
  const places = new Map();
  for (const each of [second, first]) {
    const itsSides = sidesOf(each, Math.max(0, each.resources.indexOf(cluster.resources[resource])), sizeBy);
    for (const { name, nodes } of each.groups(groupKey))
      for (const node of nodes) {
        const known = places.get(each.nodeNames[node]);
        const side = Math.max(itsSides[node], known?.side ?? 0);
        places.set(each.nodeNames[node], { group: known?.group ?? name, side });
      }
  }
  const names = [...places.keys()].sort();
  const byGroup = new Map();
  names.forEach((name, i) => {
    const { group } = places.get(name);
    if (!byGroup.has(group)) byGroup.set(group, []);
    byGroup.get(group).push(i);
  });
  return {
    groups: [...byGroup].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, nodes]) => ({ name, nodes })),
    sides: Float32Array.from(names, (name) => places.get(name).side),
    names,
  };
}

// A layout of both clusters as one of this cluster: its own nodes, where the shared layout has them.
function ofCluster(layout, cluster, { names }) {
  const [xs, ys, ss] = [0, 0, 0].map(() => new Float32Array(cluster.nodeCount));
  const own = names.map((name) => cluster.indexOfNode(name));
  own.forEach((node, i) => {
    if (node >= 0) [xs[node], ys[node], ss[node]] = [layout.xs[i], layout.ys[i], layout.ss[i]];
  });
  const mine = (nodes) => nodes.map((i) => own[i]).filter((node) => node >= 0);
  const blocks = layout.blocks.map((block) => ({
    ...block,
    nodes: mine(block.nodes),
    rows: block.rows.map((row) => ({ ...row, nodes: mine(row.nodes) })),
  }));
  return { ...layout, blocks, xs, ys, ss };
}

// A node's area is as its capacity, but the smallest can still be seen beside the largest.
function sidesOf(cluster, resource, sizeBy) {
  const sides = new Float32Array(cluster.nodeCount).fill(1);
  if (sizeBy !== "capacity") return sides;
  const capacities = cluster.map.nodes.allocatable[resource];
  const largest = capacities.reduce((a, b) => Math.max(a, b), 0) || 1;
  return sides.map((_, node) => Math.max(0.35, Math.sqrt(capacities[node] / largest)));
}

function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

// Names of nodes differ at their ends.
function ending(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let start = 1;
  while (start < text.length && context.measureText(`…${text.slice(start)}`).width > room) start += 1;
  return `…${text.slice(start)}`;
}

function fontOf(canvas) {
  canvas.fontFamily ??= getComputedStyle(canvas).fontFamily;
  return canvas.fontFamily;
}
