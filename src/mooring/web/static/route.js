// Where the reader is, in the address: `#/pod/shop/web-1?run=2`. So a view can be linked to, and «back» works.
import { useEffect, useState } from "preact-hooks";

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decoded);
  const run = Number(new URLSearchParams(query).get("run") ?? 1);
  return { view: view || "map", parts, run: Number.isInteger(run) ? run : 1 };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The run that links stay in, so that who looks at a what-if keeps looking at it.
let run = 1;

export function stayIn(id) {
  run = id;
}

export function link(view, ...parts) {
  return linkTo(run, view, ...parts);
}

export function linkTo(id, view, ...parts) {
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${id === 1 ? "" : `?run=${id}`}`;
}

export function podLink(key) {
  return link("pod", ...key.split("/"));
}

export function go(address) {
  location.hash = address;
}

export function useRoute() {
  const [route, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const follow = () => set(parse(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
