// Where everything lies on the map: groups as quays, nodes as berths along them, pods inside. Pure arithmetic.
//
//   groups  a squarified treemap of the whole, by the room their nodes need
//   nodes   shelves within a group, the largest first; one scale for all groups, so that sizes compare
//   pods    a squarified treemap of the filled part of a node, which is as high as the node is utilised

const HEAD = 26;
const PAD = 10;
const LARGEST = 340;
const SMALLEST = 3;
const ROUNDS = 4;

// `sides`: each node's side, 0..1 of the largest. `groups`: [{name, nodes}], nodes in drawing order.
export function layOut(groups, sides, width, height) {
  let [blocks, unit] = [[], LARGEST];
  for (let round = 0; round < ROUNDS; round += 1) {
    blocks = blocksOf(groups, sides, unit, width, height);
    unit = largestUnit(blocks, sides);
  }
  const xs = new Float32Array(sides.length);
  const ys = new Float32Array(sides.length);
  const ss = new Float32Array(sides.length);
  for (const block of blocks) place(block, sides, unit, xs, ys, ss);
  return { blocks, xs, ys, ss, unit, width, height };
}

// How much room a group needs depends on the scale, since gaps do not shrink with the nodes.
function blocksOf(groups, sides, unit, width, height) {
  const gap = gapOf(unit);
  const weights = groups.map((group) =>
    group.nodes.reduce((sum, i) => sum + (sides[i] * unit + gap) ** 2, unit * unit),
  );
  return squarify(weights, 0, 0, width, height).map(([x, y, w, h], k) => ({
    name: groups[k].name,
    nodes: groups[k].nodes,
    x,
    y,
    w,
    h,
    rows: [],
  }));
}

function largestUnit(blocks, sides) {
  let [low, high] = [SMALLEST, LARGEST];
  if (blocks.every((block) => fits(block, sides, high))) return high;
  while (high - low > 0.25) {
    const middle = (low + high) / 2;
    if (blocks.every((block) => fits(block, sides, middle))) low = middle;
    else high = middle;
  }
  return low;
}

export function gapOf(unit) {
  return Math.max(1, Math.min(7, unit * 0.13));
}

export function headOf(block) {
  return block.h > 70 && block.w > 46 ? HEAD : 4;
}

function padOf(block) {
  return block.h > 70 && block.w > 46 ? PAD : 3;
}

function fits(block, sides, unit) {
  const gap = gapOf(unit);
  const inner = block.w - 2 * padOf(block);
  let [x, y, row] = [0, 0, 0];
  for (const i of block.nodes) {
    const side = sides[i] * unit;
    if (x && x + side > inner) {
      y += row + gap;
      x = row = 0;
    }
    if (side > inner) return false;
    row = Math.max(row, side);
    x += side + gap;
  }
  return y + row <= block.h - headOf(block) - padOf(block);
}

function place(block, sides, unit, xs, ys, ss) {
  const gap = gapOf(unit);
  const pad = padOf(block);
  const right = block.x + block.w - pad;
  let x = block.x + pad;
  let y = block.y + headOf(block);
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
