// The page as a whole: what stays in sight, which view is shown, and what is said while there is nothing yet.
import { useEffect, useMemo, useRef, useState } from "preact-hooks";
import { isReport } from "mooring/api";
import { Finder } from "mooring/finder";
import { html } from "mooring/html";
import { JobProgress, JobTray } from "mooring/jobs";
import { useCluster, useMoments } from "mooring/moment";
import { Problems } from "mooring/parts";
import { go, link, linkTo, stayIn, useRoute } from "mooring/route";
import { jobOf, runOf, SessionContext, useFollowedSession } from "mooring/session";
import { switchTheme, useTheme } from "mooring/theme";
import { CompareView } from "mooring/views/compare";
import { MapView } from "mooring/views/map";
import { PendingView } from "mooring/views/pending";
import { PodView } from "mooring/views/pod";
import { TimeView } from "mooring/views/time";
import { WhatIfView } from "mooring/views/whatif";
import { count } from "mooring/words";

const TITLES = { map: "Map", pending: "Pending", time: "Time", whatif: "What if", compare: "Before and after", pod: "Pod" };

export function App() {
  const route = useRoute();
  stayIn(route.run);
  const { session, heard } = useFollowedSession();
  const run = runOf(session, route.run);
  const { cluster, error } = useCluster(run);
  const moments = useMoments(run, cluster);
  const [text, setText] = useState("");
  const main = useRef(null);
  const place = `${route.view}/${route.view === "map" ? "" : route.parts.join("/")}`;
  useMovedFocus(main, place);
  useEffect(() => {
    document.title = `${route.view === "pod" ? route.parts.join("/") : TITLES[route.view] ?? "Map"} · ${session?.title ?? ""} · Mooring`;
  }, [route, session?.title]);
  const value = useMemo(() => ({ session }), [session]);
  if (!session) return html`<p class="starting" role="status">Mooring is casting off …</p>`;
  return html`<${SessionContext.Provider} value=${value}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <${Top} session=${session} route=${route} run=${run} cluster=${cluster} moments=${moments} text=${text} onText=${setText} />
    ${!heard && html`<p class="lost" role="alert">The server does not answer; what you see may be out of date. Is <code>mooring ui</code> still running?</p>`}
    <main id="main" ref=${main} tabindex="-1" class=${`view-${route.view}`}>
      <${Shown} route=${route} session=${session} run=${run} cluster=${cluster} error=${error} moments=${moments} text=${text} onText=${setText} />
    </main>
    <${JobTray} jobs=${session.jobs} />
    <div id="announced" class="unseen" role="status" aria-live="polite"></div>
  <//>`;
}

// A new view begins at its top, also for those who go by keyboard.
function useMovedFocus(main, place) {
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place]);
}

function Shown({ route, session, run, cluster, error, moments, text, onText }) {
  if (route.view === "compare") return html`<${CompareView} beforeId=${Number(route.parts[0])} afterId=${Number(route.parts[1])} />`;
  if (!run) return html`<div class="empty"><h1>No such run</h1><p>It was forgotten, or never made. <a href=${linkTo(1, "map")}>To the first run</a></p></div>`;
  if (run.state !== "ready") return html`<${NotReady} run=${run} job=${jobOf(session, run.job)} />`;
  if (error) return html`<${Problems} error=${error} />`;
  if (!cluster || !moments.scene) return html`<p class="loading" role="status">Reading the cluster …</p>`;
  const all = { cluster, run, moments, text, onText };
  if (route.view === "pending") return html`<${PendingView} ...${all} scene=${moments.scene} />`;
  if (route.view === "pod") return html`<${PodView} ...${all} podKey=${route.parts.join("/")} endSeconds=${run.summary.elapsedSeconds} />`;
  if (route.view === "time") return html`<${TimeView} ...${all} />`;
  if (route.view === "whatif") return html`<${WhatIfView} ...${all} parts=${route.parts} />`;
  return html`<${MapView} ...${all} chosen=${route.parts[0]} />`;
}

function NotReady({ run, job }) {
  if (run.state !== "running") {
    return html`<div class="empty"><h1>${run.name}: ${run.state}</h1><${Problems} error=${{ message: run.state === "cancelled" ? "The run was cancelled before its end." : "The run could not be done.", problems: run.problems }} /></div>`;
  }
  return html`<div class="empty" role="status"><h1>Simulating</h1><p>${run.name}</p><${JobProgress} job=${job} /></div>`;
}

function Top({ session, route, run, cluster, moments, text, onText }) {
  const theme = useTheme();
  const pending = cluster?.pending().length;
  const views = [["map", "Map"], ["pending", "Pending"], ["time", "Time"], ["whatif", "What if"]];
  return html`<header class="top">
    <a class="brand" href=${link("map")} aria-label="Mooring, to the map"><${Bollard} /><span>Mooring</span></a>
    <nav aria-label="Views"><ul>${views.map(([view, name]) => html`<li>
      <a href=${link(view)} aria-current=${route.view === view ? "page" : undefined}>${name}${view === "pending" && pending ? html` <span class="badge">${pending.toLocaleString("en")}<span class="unseen"> pods</span></span>` : ""}</a></li>`)}
    </ul></nav>
    <${Finder} scene=${moments.scene} text=${text} onText=${onText} />
    <div class="where">
      <span class="source" title=${[...session.warnings].join("\n")}>${session.title}${isReport ? html` <span class="tag">report</span>` : ""}</span>
      ${session.runs.length > 1 && html`<label class="field inline"><span class="unseen">Run</span>
        <select value=${String(route.run)} onChange=${(event) => go(linkTo(Number(event.currentTarget.value), route.view === "compare" ? "map" : route.view, ...(route.view === "compare" ? [] : route.parts)))}>
          ${session.runs.map((each) => html`<option value=${String(each.id)} selected=${each.id === route.run}>${each.name}${each.state === "ready" ? "" : ` (${each.state})`}</option>`)}
        </select></label>`}
      ${session.warnings.length > 0 && html`<${Warnings} session=${session} />`}
      <button type="button" class="theme" aria-label=${theme === "dark" ? "Use light colours" : "Use dark colours"} onClick=${switchTheme}>${theme === "dark" ? "☀" : "☾"}</button>
    </div>
  </header>`;
}

function Warnings({ session }) {
  const skipped = Object.entries(session.skipped).map(([kind, n]) => `${kind}: ${n} not needed`);
  return html`<details class="warnings"><summary>${count(session.warnings.length, "warning")}</summary>
    <ul>${[...session.warnings, ...skipped].map((each) => html`<li>${each}</li>`)}</ul></details>`;
}

function Bollard() {
  return html`<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
    <path d="M7 5h10a1 1 0 0 1 0 3h-1.5l.8 9H18a1 1 0 0 1 1 1v2H5v-2a1 1 0 0 1 1-1h1.700l.8-9H7a1 1 0 0 1 0-3z" fill="currentColor" />
    <path d="M1 14.500c3 0 4 1.500 7.300 1.200M15.700 12.800c3.300-.4 4.300-1.800 7.300-1.800" fill="none" stroke="currentColor" stroke-width="1.600" stroke-linecap="round" />
  </svg>`;
}
