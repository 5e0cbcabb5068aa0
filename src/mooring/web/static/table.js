// A table of any length: only the rows in sight are elements. Sorted by a click on a column's head.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact-hooks";
import { html } from "mooring/html";
import { setQuery, useRoute } from "mooring/route";
import { byName } from "mooring/words";

const ROW = 30;
const BEYOND = 8;

// columns: [{key, label, cell(row), sort?(row), title?, align?}]; `sort` makes the column sortable. `sortIn` names the
// word of the address that keeps the order: `sort=-cpu`.
export function Table({ label, columns, rows, rowKey, sortedBy, descending, rowClass, empty, sortIn }) {
  const [own, setOwn] = useState(null);
  const { query } = useRoute();
  const asked = sortIn ? orderOf(query[sortIn]) : own;
  const order = useMemo(
    () => asked ?? { key: sortedBy ?? null, down: Boolean(descending) },
    [asked?.key, asked?.down, sortedBy, descending],
  );
  const setOrder = (next) =>
    sortIn ? setQuery({ [sortIn]: `${next.down ? "-" : ""}${next.key}` }) : setOwn(next);
  const sorted = useMemo(() => sortRows(rows, columns, order), [rows, columns, order]);
  const box = useRef(null);
  const [seen, setSeen] = useState({ top: 0, height: 600 });

  useLayoutEffect(() => {
    const element = box.current;
    const look = () => setSeen({ top: element.scrollTop, height: element.clientHeight });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [order]);

  const first = Math.max(0, Math.floor(seen.top / ROW) - BEYOND);
  const last = Math.min(sorted.length, Math.ceil((seen.top + seen.height) / ROW) + BEYOND);
  const sort = (column) =>
    setOrder({ key: column.key, down: order.key === column.key ? !order.down : Boolean(column.downFirst) });
  return html`<div class="rows" ref=${box} role="region" aria-label=${label} tabindex="0">
    <table aria-rowcount=${sorted.length + 1}>
      <caption class="unseen">${label}</caption>
      <thead>
        <tr>
          ${columns.map((column) => html`<${Head} column=${column} order=${order} onSort=${sort} />`)}
        </tr>
      </thead>
      <tbody>
        ${first > 0 && html`<${Spacer} rows=${first} columns=${columns.length} />`}
        ${sorted.slice(first, last).map(
          (
            row,
            i,
          ) => html`<tr key=${rowKey(row)} class=${rowClass?.(row) ?? ""} aria-rowindex=${first + i + 2}>
            ${columns.map((column, k) =>
              k === 0
                ? html`<th scope="row" class=${column.align ?? ""}>${column.cell(row)}</th>`
                : html`<td class=${column.align ?? ""}>${column.cell(row)}</td>`,
            )}
          </tr>`,
        )}
        ${last < sorted.length && html`<${Spacer} rows=${sorted.length - last} columns=${columns.length} />`}
      </tbody>
    </table>
    ${!sorted.length && html`<p class="nothing">${empty ?? "Nothing to show."}</p>`}
  </div>`;
}

function orderOf(word) {
  if (!word) return null;
  return word.startsWith("-") ? { key: word.slice(1), down: true } : { key: word, down: false };
}

function Head({ column, order, onSort }) {
  if (!column.sort)
    return html`<th scope="col" class=${column.align ?? ""} title=${column.title}>${column.label}</th>`;
  const mine = order.key === column.key;
  const way = mine ? (order.down ? "descending" : "ascending") : "none";
  return html`<th scope="col" class=${column.align ?? ""} aria-sort=${way} title=${column.title}>
    <button type="button" class="sort" onClick=${() => onSort(column)}>
      ${column.label}<span aria-hidden="true" class="arrow">${mine ? (order.down ? "▾" : "▴") : ""}</span>
    </button>
  </th>`;
}

function Spacer({ rows, columns }) {
  return html`<tr class="spacer" aria-hidden="true">
    <td colspan=${columns} style=${{ height: `${rows * ROW}px` }}></td>
  </tr>`;
}

function sortRows(rows, columns, order) {
  const column = columns.find((each) => each.key === order.key);
  if (!column?.sort) return rows;
  const turn = order.down ? -1 : 1;
  const keyed = rows.map((row) => [column.sort(row), row]);
  keyed.sort(([a], [b]) => {
    // What has no value comes last, whichever way.
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
    if (b === null || b === undefined) return -1;
    return turn * (typeof a === "string" ? byName(a, b) : a - b);
  });
  return keyed.map(([, row]) => row);
}
