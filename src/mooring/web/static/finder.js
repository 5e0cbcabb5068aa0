// The search box of the page: filters what is shown, offers what is found to go to, and says what can be written.
import { useEffect, useMemo, useRef, useState } from "preact-hooks";
import { html } from "mooring/html";
import { FIELDS, find, parseQuery, prepare } from "mooring/search";
import { go, linkWith } from "mooring/route";
import { count } from "mooring/words";

const MOST = 8;
const PAUSE_MS = 400;

export function Finder({ scene, text, onText }) {
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const box = useRef(null);
  const { problems } = parseQuery(text);
  const offers = useMemo(
    () => (open && scene && !problems.length ? offersOf(scene, text) : []),
    [open, scene, text],
  );
  useSlash(box);
  useEffect(() => {
    if (!scene) return undefined;
    const wait = setTimeout(() => prepare(scene.cluster), PAUSE_MS);
    return () => clearTimeout(wait);
  }, [scene?.cluster]);
  const shown = open && offers.length > 0;
  // What was looked for is found, so the filter goes, and keys are for the view again.
  const take = (offer) => {
    setOpen(false);
    go(offer.address);
    document.getElementById("main").focus({ preventScroll: true });
  };
  const clear = () => {
    onText("");
    box.current.focus();
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      if (shown) setOpen(false);
      else if (text) onText("");
      else box.current.blur();
    } else if (event.key === "ArrowDown" && offers.length) setAt((at + 1) % offers.length);
    else if (event.key === "ArrowUp" && offers.length) setAt((at + offers.length - 1) % offers.length);
    else if (event.key === "Enter" && offers.length && (at >= 0 || isName(text))) take(offers[Math.max(at, 0)]);
    else if (event.key === "Enter") setOpen(false);
    else return;
    event.preventDefault();
  };
  return html`<div class="finder" role="search">
    <label class="unseen" for="find">Find and filter nodes and pods</label>
    <input id="find" ref=${box} type="text" autocomplete="off" spellcheck="false" enterkeyhint="search"
      placeholder=${matchMedia("(pointer: coarse)").matches ? "Find and filter" : "Find and filter (press /)"}
      role="combobox" aria-expanded=${shown ? "true" : "false"} aria-controls="found" aria-autocomplete="list"
      aria-activedescendant=${shown && at >= 0 ? `found-${at}` : undefined} aria-describedby="find-said"
      aria-invalid=${problems.length ? "true" : "false"} value=${text}
      onInput=${(event) => {
        onText(event.currentTarget.value);
        setOpen(true);
        setAt(-1);
      }}
      onFocus=${() => setOpen(true)} onBlur=${() => setOpen(false)} onKeyDown=${onKeyDown} />
    ${
      text &&
      html`<button type="button" class="clear" aria-label="Clear the filter" onPointerDown=${(event) => event.preventDefault()}
      onClick=${clear}>✕</button>`
    }
    <p id="find-said" class=${problems.length ? "find-problem" : "unseen"} role=${problems.length ? "alert" : undefined}>
      ${problems.length ? problems[0] : foundSentence(scene, text)}</p>
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
    ${open && !shown && !text && html`<${Help} onPick=${onText} />`}
  </div>`;
}

// Who writes a name wants to go there; who writes a field wants to filter.
function isName(text) {
  return parseQuery(text).terms.every((term) => term.field === "" || term.field === "node");
}

function Help({ onPick }) {
  return html`<div class="found find-help">
    <p>A word finds names that contain it. Fields match whole words; <code>*</code> stands for anything,
      <code>-</code> before a word excludes. A match must fit all words.</p>
    <ul>${FIELDS.map(
      ([example, what]) => html`<li onPointerDown=${(event) => {
        event.preventDefault();
        onPick(`${example.split(":")[0]}:`);
      }}><code>${example}</code> <span>${what}</span></li>`,
    )}</ul>
  </div>`;
}

// `/` goes to the box, as on many pages.
function useSlash(box) {
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      box.current?.focus();
      box.current?.select();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function foundSentence(scene, text) {
  const found = scene && find(scene, text);
  if (!found) return "";
  const sum = (bytes) => bytes.reduce((a, b) => a + b, 0);
  return `${count(sum(found.nodes), "node")}, ${count(sum(found.pods), "pod")} found`;
}

function offersOf(scene, text) {
  const { terms } = parseQuery(text);
  const { cluster } = scene;
  const found = find(scene, text);
  if (!terms.length || !found) return [];
  const words = terms.filter((term) => !term.not && (term.field === "" || term.field === "node"));
  const offers = [];
  for (let i = 0; i < found.nodes.length && offers.length < MOST / 2; i += 1) {
    const name = cluster.nodeNames[i];
    const named = words.length && words.every((term) => term.matches(name.toLowerCase()));
    if (found.nodes[i] && named)
      offers.push({ kind: "node", text: name, address: linkWith({ q: null }, "map", name) });
  }
  for (let i = 0; i < found.pods.length && offers.length < MOST; i += 1) {
    if (!found.pods[i]) continue;
    const key = cluster.podKey(i);
    offers.push({ kind: "pod", text: key, address: linkWith({ q: null }, "pod", ...key.split("/")) });
  }
  return offers;
}
