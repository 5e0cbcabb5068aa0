// What stays in sight: the name, the views, the search box, which cluster and run this is, light or dark.
import { isReport } from "mooring/api";
import { Finder } from "mooring/finder";
import { html } from "mooring/html";
import { go, link, linkTo } from "mooring/route";
import { switchTheme, useTheme } from "mooring/theme";
import { count } from "mooring/words";

const VIEWS = [
  ["map", "Map"],
  ["pending", "Pending"],
  ["time", "Time"],
  ["whatif", "What if"],
];

export function Top({ session, route, moments, text, onText }) {
  // What the list shows that it leads to.
  const pending = moments.scene?.waiting();
  return html`<header class="top">
    <a class="brand" href=${link("map")} aria-label="Mooring, to the map"><${Bollard} /><span>Mooring</span></a>
    <nav aria-label="Views">
      <ul>
        ${VIEWS.map(
          ([view, name]) => html`<li>
            <a href=${link(view)} aria-current=${route.view === view ? "page" : undefined}>
              ${name}${view === "pending" && html`<${Badge} pods=${pending} />`}
            </a>
          </li>`,
        )}
      </ul>
    </nav>
    <${Finder} scene=${moments.scene} text=${text} onText=${onText} />
    <div class="where">
      <span class="source" title=${session.title}>${lastPart(session.title)}</span>
      ${isReport && html`<span class="tag">report</span>`}
      ${isReport && session.made && html`<${Made} session=${session} />`}
      ${session.runs.length > 1 && html`<${RunChoice} runs=${session.runs} route=${route} />`}
      ${session.warnings.length > 0 && html`<${Warnings} session=${session} />`}
      <${ThemeSwitch} />
    </div>
  </header>`;
}

// Of a path, what tells it from others.
export function lastPart(title) {
  return title.split("/").filter(Boolean).pop() ?? title;
}

function Badge({ pods }) {
  if (pods === undefined) return null;
  return html`${" "}<span class=${`badge ${pods ? "" : "none"}`}>${pods.toLocaleString("en")}<span class="unseen"> ${pods === 1 ? "pod" : "pods"}</span></span>`;
}

function RunChoice({ runs, route }) {
  const change = (event) => {
    const run = Number(event.currentTarget.value);
    go(route.view === "compare" ? linkTo(run, "map") : linkTo(run, route.view, ...route.parts));
  };
  return html`<label class="field"><span class="unseen">Run</span>
    <select value=${String(route.run)} onChange=${change}>
      ${runs.map(
        (run) => html`<option value=${String(run.id)} selected=${run.id === route.run}>
          ${run.name}${run.state === "ready" ? "" : ` (${run.state})`}
        </option>`,
      )}
    </select>
  </label>`;
}

// When, by which version and by which command a report was written.
function Made({ session }) {
  return html`<details class="warnings made">
    <summary>${session.made.at}</summary>
    <ul><li>Written by mooring ${session.mooring}</li><li><code>${session.made.command}</code></li></ul>
  </details>`;
}

function Warnings({ session }) {
  const skipped = Object.entries(session.skipped).map(([kind, n]) => `${kind}: ${n} skipped`);
  return html`<details class="warnings">
    <summary>${count(session.warnings.length, "warning")}</summary>
    <ul>${[...session.warnings, ...skipped].map((each) => html`<li>${each}</li>`)}</ul>
  </details>`;
}

function ThemeSwitch() {
  const dark = useTheme() === "dark";
  const label = dark ? "Use light colours" : "Use dark colours";
  return html`<button type="button" class="theme" aria-label=${label} onClick=${switchTheme}>
    ${dark ? "☀" : "☾"}
  </button>`;
}

function Bollard() {
  return html`<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
    <path fill="currentColor"
      d="M7 5h10a1 1 0 0 1 0 3h-1.5l.8 9H18a1 1 0 0 1 1 1v2H5v-2a1 1 0 0 1 1-1h1.7l.8-9H7a1 1 0 0 1 0-3z" />
    <path fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"
      d="M1 14.5c3 0 4 1.5 7.3 1.2M15.7 12.8c3.3-.4 4.3-1.8 7.3-1.8" />
  </svg>`;
}
