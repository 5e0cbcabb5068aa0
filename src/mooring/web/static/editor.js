// A text with numbered lines, of which those with a problem are marked; the server says which.
import { useEffect, useRef, useState } from "preact-hooks";
import { post } from "mooring/api";
import { html } from "mooring/html";

const PAUSE_MS = 250;

export function Editor({ id, label, text, onText, problems, rows = 24, disabled }) {
  const area = useRef(null);
  const gutter = useRef(null);
  const lines = text.split("\n").length;
  const bad = new Set((problems ?? []).map((each) => each.line));
  const follow = () => {
    gutter.current.scrollTop = area.current.scrollTop;
  };
  return html`<div class="editor">
    <label class="unseen" for=${id}>${label}</label>
    <pre class="gutter" ref=${gutter} aria-hidden="true">${Array.from(
      { length: lines },
      (_, i) => html`<span
      class=${bad.has(i + 1) ? "bad" : ""}>${i + 1}</span>`,
    )}</pre>
    <textarea id=${id} ref=${area} rows=${rows}
      value=${text} spellcheck="false" wrap="off" autocomplete="off" autocapitalize="off"
      disabled=${disabled} aria-invalid=${bad.size ? "true" : "false"} aria-describedby=${`${id}-check`}
      onInput=${(event) => onText(event.currentTarget.value)} onScroll=${follow}></textarea>
  </div>`;
}

// Puts the cursor at the start of a line.
export function goToLine(id, line) {
  const area = document.getElementById(id);
  const start =
    area.value
      .split("\n")
      .slice(0, line - 1)
      .join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(start, start);
  area.scrollTop = Math.max(0, (line - 6) * 18);
}

// What the real validator says of a text, a moment after the last key. null: not asked, or not answered yet.
export function useCheck(run, kind, text) {
  const [said, set] = useState({ text: null, answer: null });
  useEffect(() => {
    if (text === null || !text.trim()) return undefined;
    let here = true;
    const wait = setTimeout(() => {
      post("api/check", { run, [kind]: text }).then(
        (answer) => here && set({ text, answer }),
        (error) =>
          here &&
          set({
            text,
            answer: {
              ok: false,
              problems: error.problems.length
                ? error.problems
                : [{ path: "", line: null, text: error.message }],
            },
          }),
      );
    }, PAUSE_MS);
    return () => {
      here = false;
      clearTimeout(wait);
    };
  }, [run, kind, text]);
  return said.text === text ? said.answer : null;
}
