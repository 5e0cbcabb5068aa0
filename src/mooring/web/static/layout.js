// Where everything lies on the map: groups as quays, nodes as berths along them, pods inside. Pure arithmetic.
//
//   groups  shelves over the whole width, the largest group first; groups on a shelf are as high as each other
//   nodes   shelves within a group, the largest first; one scale for all groups, so that sizes compare
//   pods    a squarified treemap of the filled part of a node, which is as high as the node is utilised
//
// The scale is the largest at which everything fits, so a small group does not make the others smaller.

// How much of a quay is its name and its edge; where there are many quays, names are small, and where there are
// thousands, there are none. Nodes that take `enough` of the map need no smaller edge.
const EDGES = [
  { head: 26, pad: 8, enough: 0.4 },
  { head: 14, pad: 3, enough: 0.1 },
  { head: 2, pad: 2, enough: 0 },
];
const LARGEST = 700;
const SMALLEST = 1;
const SHARES = [1, 3 / 4, 2 / 3, 1 / 2, 1 / 3, 1 / 4, 1 / 6, 1 / 9, 1 / 14, 1 / 20, 1 / 28];

// `sides`: each node's side, 0..1 of the largest. `groups`: [{name, nodes}], nodes in drawing order.
export function layOut(groups, sides, width, height) {
  const ordered = groups
    .filter((group) => group.nodes.length)
    .map(({ name, nodes }) => ({ name, nodes, runs: runsOf(nodes, sides) }))
    .map((group) => ({ ...group, area: areaOf(group.runs) }))
    .sort((a, b) => b.area - a.area);
  shareRuns(ordered);
  const all = ordered.reduce((sum, group) => sum + group.area, 0);
  let [unit, edge] = [0, EDGES[0]];
  for (const each of EDGES) {
    const found = largestUnit(ordered, width, height, each, all);
    if (found > unit * 1.15) [unit, edge] = [found, each];
    if (unit >= LARGEST || (all * unit * unit) / (width * height) > each.enough) break;
  }
  const blocks = stretched(shelvesAt(ordered, unit, width, edge), width, height);
  const [xs, ys, ss] = [0, 0, 0].map(() => new Float32Array(sides.length));
  for (const block of blocks) place(block, sides, unit, edge, xs, ys, ss);
  return { blocks, xs, ys, ss, unit, head: edge.head, width, height };
}

function largestUnit(groups, width, height, edge, area) {
  const fits = (unit) => heightOf(shelvesAt(groups, unit, width, edge)) <= height;
  // Nodes cannot take more than the whole map.
  let [low, high] = [SMALLEST, Math.max(SMALLEST, Math.min(LARGEST, Math.sqrt((width * height) / area)))];
  if (fits(high)) return high;
  while (high - low > 0.2) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

// [[side, how many nodes of it follow each other]]: scales are tried by the dozen, and most nodes are as large as the
// one before them.
function runsOf(nodes, sides) {
  const runs = [];
  for (const i of nodes) {
    const last = runs[runs.length - 1];
    if (last && last[0] === sides[i]) last[1] += 1;
    else runs.push([sides[i], 1]);
  }
  return runs;
}

function areaOf(runs) {
  return runs.reduce((sum, [side, many]) => sum + many * side * side, 0);
}

// Groups of like nodes get the same runs, for which a width is then looked for once.
function shareRuns(groups) {
  const known = new Map();
  for (const group of groups) {
    const key = group.runs.join(";");
    if (!known.has(key)) known.set(key, group.runs);
    group.runs = known.get(key);
  }
}

// [{h, blocks: [{group, w}]}], each shelf as full as can be.
function shelvesAt(groups, unit, width, edge) {
  const shelves = [];
  const scale = { unit, width, edge, widths: new Map() };
  for (let start = 0; start < groups.length; ) {
    let best = null;
    for (const share of sharesFor(groups[start], scale)) {
      const shelf = shelfAt(groups, start, scale, share);
      if (shelf && (!best || fillOf(shelf, scale) > fillOf(best, scale) + 0.01)) best = shelf;
    }
    // Too small to be wide enough for a node: as wide as there is.
    best ??= { h: Infinity, blocks: [{ group: groups[start], w: width }] };
    shelves.push(best);
    start += best.blocks.length;
  }
  return shelves;
}

// Those that make a group neither a thread nor a ribbon; if all do, it is as narrow as its largest node.
function sharesFor(group, { unit, width }) {
  const [side, gap] = [Math.sqrt(group.area), gapOf(unit)];
  const least = 0.4 * side * (unit + gap);
  // There is nothing to put beside a single row.
  const most = Math.min(20 * least, group.nodes.length * (unit + gap) * 1.5);
  const shares = SHARES.filter((share) => share * width > least && share * width < most);
  return shares.length ? shares : [0];
}

// A shelf whose first group takes this share of its width; the next ones follow as long as they fit.
function shelfAt(groups, start, scale, share) {
  const { unit, width, edge } = scale;
  const first = groups[start];
  const wide = Math.max(width * share, unit + 2 * edge.pad + 1);
  if (wide > width) return null;
  const h = edge.head + edge.pad + flow(first.runs, unit, wide - 2 * edge.pad);
  const blocks = [{ group: first, w: wide }];
  let used = wide;
  for (let k = start + 1; k < groups.length; k += 1) {
    const w = knownWidth(groups[k].runs, scale, h, width - used);
    if (w === null) break;
    blocks.push({ group: groups[k], w });
    used += w;
  }
  return { h, blocks };
}

// How much of a shelf its nodes take, with the gaps beside them.
function fillOf({ h, blocks }, { unit, width }) {
  const gap = gapOf(unit);
  let area = 0;
  for (const { group } of blocks) for (const [side, many] of group.runs) area += many * (side * unit + gap) ** 2;
  return area / (width * h);
}

function knownWidth(runs, scale, h, most) {
  const { width, widths } = scale;
  if (!widths.has(runs)) widths.set(runs, new Map());
  const ofRuns = widths.get(runs);
  if (!ofRuns.has(h)) ofRuns.set(h, widthFor(runs, scale, h, width));
  const w = ofRuns.get(h);
  if (w === null || w <= most) return w;
  return fitsIn(runs, scale, h, most) ? most : null;
}

// About the least width at which the nodes are no higher than the shelf; null if there is none.
function widthFor(runs, scale, h, most) {
  if (!fitsIn(runs, scale, h, most)) return null;
  let [low, high] = [scale.unit, most];
  while (high - low > Math.max(1, scale.unit / 4)) {
    const middle = (low + high) / 2;
    if (fitsIn(runs, scale, h, middle)) high = middle;
    else low = middle;
  }
  return high;
}

function fitsIn(runs, { unit, edge: { head, pad } }, h, w) {
  return w >= unit + 2 * pad + 1 && flow(runs, unit, w - 2 * pad) <= h - head - pad + 0.01;
}

function heightOf(shelves) {
  return shelves.reduce((sum, shelf) => sum + shelf.h, 0);
}

// What is left over is shared out, so that the quays fill the map.
function stretched(shelves, width, height) {
  const blocks = [];
  const more = Math.max(0, height - heightOf(shelves)) / (shelves.length || 1);
  let y = 0;
  for (const shelf of shelves) {
    const used = shelf.blocks.reduce((sum, { w }) => sum + w, 0);
    const h = Number.isFinite(shelf.h) ? shelf.h + more : height - y;
    let x = 0;
    for (const { group, w } of shelf.blocks) {
      const wide = (w / used) * width;
      blocks.push({ name: group.name, nodes: group.nodes, x, y, w: wide, h, rows: [] });
      x += wide;
    }
    y += h;
  }
  return blocks;
}

export function gapOf(unit) {
  return Math.max(0.5, Math.min(7, unit * 0.13));
}

// How high the nodes are together in a group of this inner width; the same as `place` makes it.
function flow(runs, unit, inner) {
  const gap = gapOf(unit);
  let [x, y, row] = [0, 0, 0];
  for (const [part, many] of runs) {
    const side = part * unit;
    const step = side + gap;
    let left = many;
    if (x) {
      const beside = Math.min(left, inRow(inner - x, side, step));
      if (beside) {
        row = Math.max(row, side);
        x += beside * step;
        left -= beside;
      }
      if (!left) continue;
      y += row + gap;
    }
    const full = Math.max(1, inRow(inner, side, step));
    const before = Math.ceil(left / full) - 1;
    y += before * step;
    row = side;
    x = (left - before * full) * step;
  }
  return y + row;
}

function inRow(width, side, step) {
  return width < side ? 0 : Math.floor((width - side) / step + 1e-9) + 1;
}

function place(block, sides, unit, { head, pad }, xs, ys, ss) {
  const gap = gapOf(unit);
  const right = block.x + block.w - pad;
  let x = block.x + pad;
  let y = block.y + head;
  let row = { y, h: 0, nodes: [] };
  for (const i of block.nodes) {
    const side = sides[i] * unit;
    if (row.nodes.length && x + side > right + 0.01) {
      block.rows.push(row);
      y += row.h + gap;
      x = block.x + pad;
      row = { y, h: 0, nodes: [] };
    }
    xs[i] = x;
    ys[i] = y;
    ss[i] = side;
    row.nodes.push(i);
    row.h = Math.max(row.h, side);
    x += side + gap;
  }
  if (row.nodes.length) block.rows.push(row);
}

// The node at a point of the map; -1 if there is none.
export function nodeAt(layout, x, y) {
  for (const block of layout.blocks) {
    if (x < block.x || y < block.y || x > block.x + block.w || y > block.y + block.h) continue;
    const row = block.rows.find((each) => y >= each.y && y <= each.y + each.h);
    const hit = row?.nodes.find((i) => x >= layout.xs[i] && x <= layout.xs[i] + layout.ss[i]);
    return hit !== undefined && y <= layout.ys[hit] + layout.ss[hit] ? hit : -1;
  }
  return -1;
}

// The next node in a direction, as an arrow key asks for it: near, and rather straight ahead.
export function neighbour(layout, from, dx, dy, allowed) {
  const { xs, ys, ss } = layout;
  const [cx, cy] = [xs[from] + ss[from] / 2, ys[from] + ss[from] / 2];
  let [best, least] = [from, Infinity];
  for (let i = 0; i < xs.length; i += 1) {
    if (i === from || !ss[i] || (allowed && !allowed[i])) continue;
    const [rx, ry] = [xs[i] + ss[i] / 2 - cx, ys[i] + ss[i] / 2 - cy];
    const ahead = rx * dx + ry * dy;
    const aside = Math.abs(rx * dy) + Math.abs(ry * dx);
    if (ahead < 1 || aside > ahead * 3) continue;
    const far = ahead + aside * 2.5;
    if (far < least) [best, least] = [i, far];
  }
  return best;
}

// Rectangles [x, y, w, h] with areas as the weights, as square as can be, in the order given.
export function squarify(weights, x, y, w, h) {
  const total = weights.reduce((a, b) => a + b, 0);
  const rects = new Array(weights.length);
  if (!total || w <= 0 || h <= 0) return rects.fill(null).map(() => [x, y, 0, 0]);
  const order = weights.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b);
  const scale = (w * h) / total;
  let start = 0;
  while (start < order.length) {
    const short = Math.min(w, h);
    let end = start;
    let sum = 0;
    let worst = Infinity;
    while (end < order.length) {
      const grown = sum + weights[order[end]] * scale;
      const ratio = worstRatio(weights[order[start]] * scale, weights[order[end]] * scale, grown, short);
      if (ratio > worst) break;
      [sum, worst] = [grown, ratio];
      end += 1;
    }
    if (end === start) end = start + 1;
    const thick = short > 0 ? sum / short : 0;
    let along = 0;
    for (let k = start; k < end; k += 1) {
      const length = thick > 0 ? (weights[order[k]] * scale) / thick : 0;
      rects[order[k]] = w >= h ? [x, y + along, thick, length] : [x + along, y, length, thick];
      along += length;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    start = end;
  }
  return rects;
}

function worstRatio(largest, smallest, sum, side) {
  const [area, square] = [sum * sum, side * side];
  return Math.max((square * largest) / area, area / (square * smallest || 1e-9));
}

// Pods in a tile of side 1; what is not filled stays free at the top. Returns flat x, y, w, h.
export function podRects(amounts, capacity) {
  const used = amounts.reduce((a, b) => a + b, 0);
  const fill = Math.min(1, used / capacity || 0);
  return new Float32Array(squarify(amounts, 0, 1 - fill, 1, fill).flat());
}
