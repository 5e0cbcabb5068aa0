// Where the reader is and what they see, in the address: `#/pod/shop/web-1?run=2&q=ns:shop&at=90s`. So a link shows
// the same to somebody else, a reload shows it again, and «back» brings it back.
import { useEffect, useState } from "preact-hooks";

export const VIEWS = ["map", "pending", "time", "whatif", "compare", "pod", "workload", "gang"];
// What stays when another view is opened; everything else belongs to one view.
const SHARED = ["run", "q", "at", "by", "resource", "group", "size", "colour"];
// A moment and a filter belong to a run's own pods and nodes.
const OF_RUN = ["at", "by"];
// Browsers allow few changes of the address a second; what is slid or typed is written once it rests.
const REST_MS = 250;

const listeners = new Set();
let route = parse(location.hash);
let unwritten = 0;

export function parse(hash) {
  const [path, ...rest] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decoded);
  const query = Object.fromEntries(new URLSearchParams(rest.join("?")));
  return { view: view || "map", parts, query, run: Number(query.run ?? 1) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function addressOf(view, parts, query) {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (key === "run" && String(value) === "1") continue;
    words.set(key, value);
  }
  // Only what would end the address or a part of it has to be written otherwise.
  const text = words.toString().replace(/%3A/g, ":").replace(/%2F/g, "/").replace(/%2C/g, ",").replace(/%3D/g, "=");
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

function shared(query) {
  return Object.fromEntries(SHARED.filter((key) => key in query).map((key) => [key, query[key]]));
}

// To another view of the same run, with the same filter, moment and colours.
export function link(view, ...parts) {
  return addressOf(view, parts, shared(route.query));
}

// The same with some of it changed; null takes something away.
export function linkWith(more, view, ...parts) {
  return addressOf(view, parts, { ...shared(route.query), ...more });
}

export function linkTo(run, view, ...parts) {
  const query = { ...shared(route.query), run };
  if (run !== route.run) for (const key of OF_RUN) delete query[key];
  return addressOf(view, parts, query);
}

export function podLink(key) {
  return link("pod", ...key.split("/"));
}

export function nodeLink(name) {
  return link("map", name);
}

export function go(address) {
  flush();
  location.hash = address;
}

// Changes what is seen without a new entry for «back».
export function setQuery(more) {
  route = { ...route, query: { ...route.query, ...more } };
  for (const key of Object.keys(more)) if (more[key] === null || more[key] === "") delete route.query[key];
  clearTimeout(unwritten);
  unwritten = setTimeout(flush, REST_MS);
  tell();
}

function flush() {
  clearTimeout(unwritten);
  if (!unwritten) return;
  unwritten = 0;
  history.replaceState(history.state, "", addressOf(route.view, route.parts, route.query));
}

// An address may ask for something that is to be done once. It is remembered with this entry of the history, so a
// reload and «back» do not do it again, and following the link again does.
export function isTaken() {
  return Boolean(history.state?.taken);
}

export function markTaken() {
  history.replaceState({ taken: true }, "");
}

function tell() {
  for (const listener of listeners) listener(route);
}

addEventListener("hashchange", () => {
  clearTimeout(unwritten);
  unwritten = 0;
  route = parse(location.hash);
  tell();
});
// A link may be followed, or the page left, before the address is written.
addEventListener("click", flush, true);
addEventListener("pagehide", flush);

export function useRoute() {
  const [value, set] = useState(route);
  useEffect(() => {
    set(route);
    listeners.add(set);
    return () => listeners.delete(set);
  }, []);
  return value;
}

// One word of the address, and a way to change it. A word that is not `allowed` counts as none.
export function useQuery(key, otherwise, allowed = null) {
  const { query } = useRoute();
  const value = !allowed || allowed.includes(query[key]) ? (query[key] ?? otherwise) : otherwise;
  return [value, (value) => setQuery({ [key]: value === otherwise ? null : value })];
}
