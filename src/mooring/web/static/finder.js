// The search box of the page: filters what is shown, and offers what is found to go to.
import { useEffect, useMemo, useState } from "preact-hooks";
import { html } from "mooring/html";
import { find, HINT, parseQuery, prepare } from "mooring/search";
import { go, link, podLink } from "mooring/route";

const MOST = 8;
const PAUSE_MS = 400;

export function Finder({ scene, text, onText }) {
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const offers = useMemo(() => (open && scene ? offersOf(scene, text) : []), [open, scene, text]);
  useEffect(() => {
    if (!scene) return undefined;
    const wait = setTimeout(() => prepare(scene.cluster), PAUSE_MS);
    return () => clearTimeout(wait);
  }, [scene?.cluster]);
  const shown = open && offers.length > 0;
  const take = (offer) => {
    setOpen(false);
    go(offer.address);
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      if (shown) setOpen(false);
      else onText("");
    } else if (event.key === "ArrowDown" && offers.length) setAt((at + 1) % offers.length);
    else if (event.key === "ArrowUp" && offers.length) setAt((at + offers.length - 1) % offers.length);
    else if (event.key === "Enter" && offers.length) take(offers[Math.max(at, 0)]);
    else return;
    event.preventDefault();
  };
  return html`<div class="finder" role="search">
    <label class="unseen" for="find">Find and filter nodes and pods</label>
    <input id="find" type="search" autocomplete="off" spellcheck="false"
      placeholder="Find  web  ns:shop  label:app=web  node:n1"
      role="combobox" aria-expanded=${shown ? "true" : "false"} aria-controls="found" aria-autocomplete="list"
      aria-activedescendant=${shown && at >= 0 ? `found-${at}` : undefined} aria-describedby="find-hint" value=${text}
      onInput=${(event) => {
        onText(event.currentTarget.value);
        setOpen(true);
        setAt(-1);
      }}
      onFocus=${() => setOpen(Boolean(text))} onBlur=${() => setOpen(false)} onKeyDown=${onKeyDown} />
    <span id="find-hint" class="unseen">For example: ${HINT}</span>
    <ul id="found" role="listbox" aria-label="Found" class="found" hidden=${!shown}>
      ${offers.map(
        (offer, i) => html`<li id=${`found-${i}`} role="option" aria-selected=${i === at ? "true" : "false"}
        onPointerDown=${(event) => {
          event.preventDefault();
          take(offer);
        }}>
        <span class="kind">${offer.kind}</span> ${offer.text}</li>`,
      )}
    </ul>
  </div>`;
}

function offersOf(scene, text) {
  if (!parseQuery(text).length) return [];
  const { cluster } = scene;
  const { nodes, pods } = find(cluster, scene.places, text);
  const words = parseQuery(text).filter((term) => term.field === "" || term.field === "node");
  const offers = [];
  for (let i = 0; i < nodes.length && offers.length < MOST / 2; i += 1) {
    const named =
      words.length && words.every((term) => cluster.nodeNames[i].toLowerCase().includes(term.value));
    if (nodes[i] && named)
      offers.push({ kind: "node", text: cluster.nodeNames[i], address: link("map", cluster.nodeNames[i]) });
  }
  for (let i = 0; i < pods.length && offers.length < MOST; i += 1) {
    if (pods[i]) offers.push({ kind: "pod", text: cluster.podKey(i), address: podLink(cluster.podKey(i)) });
  }
  return offers;
}
