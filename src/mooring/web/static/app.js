// The page as a whole: what stays in sight, which view is shown, and what is said while there is nothing yet.
import { useEffect, useMemo, useRef } from "preact-hooks";
import { html } from "mooring/html";
import { JobProgress, JobTray } from "mooring/jobs";
import { useCluster, useMoments } from "mooring/moment";
import { NoSuchRun, Problems } from "mooring/parts";
import { link, setQuery, useRoute, VIEWS } from "mooring/route";
import { jobOf, runOf, SessionContext, useFollowedSession } from "mooring/session";
import { lastPart, Top } from "mooring/top";
import { CompareView } from "mooring/views/compare";
import { MapView } from "mooring/views/map";
import { PendingView } from "mooring/views/pending";
import { PodView } from "mooring/views/pod";
import { TimeView } from "mooring/views/time";
import { WhatIfView } from "mooring/views/whatif";
import { WorkloadView } from "mooring/views/workload";

const TITLES = {
  map: "Map",
  pending: "Pending",
  time: "Time",
  whatif: "What if",
  compare: "Before and after",
  pod: "Pod",
  workload: "Workload",
  gang: "Gang",
};

export function App() {
  const route = useRoute();
  const { session, heard } = useFollowedSession();
  const run = runOf(session, route.run);
  const { cluster, error } = useCluster(run);
  const moments = useMoments(run, jobOf(session, run?.job), cluster, route.query);
  const text = route.query.q ?? "";
  const setText = (q) => setQuery({ q });
  const main = useRef(null);
  const place = `${route.view}/${route.view === "map" ? "" : route.parts.join("/")}`;
  useMovedFocus(main, place);
  useEffect(() => {
    const what = route.view === "pod" ? route.parts.join("/") : (TITLES[route.view] ?? "Map");
    document.title = `${what} · ${lastPart(session?.title ?? "")} · Mooring`;
  }, [route, session?.title]);
  const value = useMemo(() => ({ session }), [session]);
  if (!session) return html`<p class="starting" role="status">Loading mooring …</p>`;
  return html`<${SessionContext.Provider} value=${value}>
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      main.current.focus();
    }}>Skip to the content</a>
    <${Top} session=${session} route=${route} moments=${moments} text=${text} onText=${setText} />
    ${heard !== true && html`<${Lost} restarted=${heard === "restarted"} ended=${runOf(session, 1)?.state === "failed"} />`}
    <main id="main" ref=${main} tabindex="-1" class=${`view-${route.view}`}>
      <${Shown} route=${route} session=${session} run=${run} cluster=${cluster} error=${error} moments=${moments}
        text=${text} onText=${setText} />
    </main>
    <${JobTray} jobs=${session.jobs} but=${run?.state === "running" ? run.job : null} />
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
  const address = [route.view, ...route.parts].join("/");
  if (!VIEWS.includes(route.view) || address === "pod")
    return html`<div class="empty">
      <h1>No such view</h1>
      <p>There is no view “${address}”. <a href=${link("map")}>Go to the map</a></p>
    </div>`;
  if (route.view === "compare")
    return html`<${CompareView} beforeId=${Number(route.parts[0])} afterId=${Number(route.parts[1])} />`;
  if (!run) return html`<${NoSuchRun} />`;
  if (run.state !== "ready" && !moments.underWay) return html`<${NotReady} run=${run} job=${jobOf(session, run.job)} title=${session.title} />`;
  if (error) return html`<${Problems} error=${error} />`;
  if (moments.error) return html`<${Problems} error=${moments.error} />`;
  if (!cluster || !moments.scene) return html`<p class="loading" role="status">Reading the cluster …</p>`;
  const all = { cluster, run, moments, text, onText };
  // The view stays in its place when the run is over, with what was typed into it.
  return html`${moments.underWay && html`<${SoFar} key="so-far" job=${jobOf(session, run.job)} />`}
    <${View} key="view" route=${route} all=${all} />`;
}

// Views that can be shown before the simulation is done.
const SO_FAR = ["map", "pending", "whatif", "workload"];

function View({ route, all }) {
  const { view, parts } = route;
  const { run, moments } = all;
  const name = parts.join("/");
  if (moments.underWay && !SO_FAR.includes(view))
    return html`<div class="empty"><h1>${view === "pod" ? name : TITLES[view]}</h1>
      <p>This is shown when the simulation is done.</p></div>`;
  if (view === "pending") return html`<${PendingView} ...${all} scene=${moments.scene} />`;
  if (view === "pod")
    return html`<${PodView} ...${all} podKey=${name} attempt=${route.query.attempt} endSeconds=${run.summary.elapsedSeconds} />`;
  if (view === "workload") return html`<${WorkloadView} ...${all} scene=${moments.scene} name=${name} />`;
  if (view === "gang") return html`<${WorkloadView} ...${all} scene=${moments.scene} name=${name} isGang />`;
  if (view === "time") return html`<${TimeView} ...${all} />`;
  if (view === "whatif") return html`<${WhatIfView} ...${all} parts=${parts} />`;
  return html`<${MapView} ...${all} chosen=${parts[0]} />`;
}

function SoFar({ job }) {
  return html`<section class="so-far" aria-labelledby="so-far-title">
    <h2 id="so-far-title">Simulating</h2>
    <p class="quiet">This is the cluster so far.</p>
    <${JobProgress} job=${job} named=${false} />
  </section>`;
}

function Lost({ restarted, ended }) {
  if (ended)
    return html`<p class="lost" role="alert">
      <code>mooring ui</code> has ended. Correct what is wrong, and start it again.
    </p>`;
  if (restarted)
    return html`<p class="lost" role="alert">
      <code>mooring ui</code> was started again and does not know this page. Open the address that it printed.
    </p>`;
  return html`<p class="lost" role="alert">
    The server does not answer; what you see may be out of date. Is <code>mooring ui</code> still running?
  </p>`;
}

function NotReady({ run, job, title }) {
  if (run.state === "running") {
    return html`<div class="empty" role="status">
      <h1>${run.read ? "Simulating" : "Reading the cluster"}</h1>
      <p>${run.read ? run.name : title}</p>
      <${JobProgress} job=${job} named=${false} />
    </div>`;
  }
  if (!run.read && run.state === "failed") {
    const [first, ...others] = run.problems;
    return html`<div class="empty">
      <h1>The cluster cannot be read</h1>
      <${Problems} error=${{ message: first.text, problems: others }} />
    </div>`;
  }
  const cancelled = run.state === "cancelled";
  const message = cancelled ? "The run was cancelled." : "The run failed.";
  return html`<div class="empty">
    <h1>${run.name}: ${run.state}</h1>
    <${Problems} error=${{ message, problems: run.problems }} />
  </div>`;
}
