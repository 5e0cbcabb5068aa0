// Work under way, with how far it is and a way to stop it.
import { useEffect, useRef } from "preact-hooks";
import { announce } from "mooring/announce";
import { remove } from "mooring/api";
import { html } from "mooring/html";
import { amount } from "mooring/words";

// `named`: whether it says what the job is called, which its surroundings may say already.
export function JobProgress({ job, named = true }) {
  if (!job || job.state !== "running") return null;
  const known = job.total !== null && job.total > 0;
  const number = (n) => (job.unit === "bytes" ? `${amount("memory", n)}B` : n.toLocaleString("en"));
  const numbers = known ? `${number(job.done)} of ${number(job.total)}` : job.done ? number(job.done) : "";
  return html`<div class="job">
    ${named && html`<span class="name">${job.title}</span>${" "}`}<span class="quiet">${job.phase} ${numbers}</span>
    <progress aria-label=${`${job.title}: ${job.phase}`} max=${known ? job.total : undefined}
      value=${known ? job.done : undefined}></progress>
    <button type="button" class="small" onClick=${() => remove(`api/jobs/${job.id}`)}>Cancel</button>
  </div>`;
}

// `but`: the job that the view itself shows.
export function JobTray({ jobs, but }) {
  useTold(jobs);
  // What would make a pod fit is looked for on the pod's own page, and shown there.
  const running = jobs.filter((job) => job.state === "running" && job.kind !== "counterfactuals" && job.id !== but);
  if (!running.length) return null;
  return html`<section class="tray" aria-label="Running jobs">
    ${running.map((job) => html`<${JobProgress} key=${job.id} job=${job} />`)}
  </section>`;
}

// The end of a job is said aloud, once.
function useTold(jobs) {
  const seen = useRef(new Map());
  useEffect(() => {
    for (const job of jobs) {
      if (seen.current.get(job.id) === "running" && job.state !== "running")
        announce(`${job.title}: ${job.state}`);
      seen.current.set(job.id, job.state);
    }
  }, [jobs]);
}
