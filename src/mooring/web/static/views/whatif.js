// What if: another configuration, a changed pod or node, more nodes or fewer; run, and see the difference.
import { useEffect, useMemo, useRef, useState } from "preact-hooks";
import { ask, get, isReport, post, remove, useAnswer } from "mooring/api";
import { Editor, goToLine, useCheck } from "mooring/editor";
import { html } from "mooring/html";
import { JobProgress } from "mooring/jobs";
import { Choice, ProblemList, Problems, Switch } from "mooring/parts";
import { go, isTaken, link, linkTo, markTaken, useQuery } from "mooring/route";
import { useSession, useWork } from "mooring/session";
import { weightsIn, withWeight } from "mooring/weights";
import { count } from "mooring/words";

const EMPTY = { config: null, objects: "", changes: [], name: "" };
const MOST_UNDONE = 30;
const KEPT = "mooring.draft.";

// Edits are kept for the tab, by run: through other views, «back», a reload and a run that was cancelled. A server that
// is started again at the same address may show another cluster, and another run of the same number.
function placeOf(session, run) {
  return KEPT + JSON.stringify([session.title, run.id, run.name]);
}

function readDraft(place) {
  try {
    return { ...EMPTY, ...JSON.parse(sessionStorage.getItem(place) ?? "{}") };
  } catch {
    return EMPTY;
  }
}

function writeDraft(place, draft) {
  try {
    sessionStorage.setItem(place, JSON.stringify(draft));
  } catch {
    // It lasts as long as the view.
  }
}

export function WhatIfView(props) {
  return isReport ? html`<${OnlyInUi} run=${props.run} />` : html`<${WhatIf} key=${props.run.id} ...${props} />`;
}

function WhatIf({ cluster, run, parts }) {
  const { session } = useSession();
  const place = placeOf(session, run);
  const [state, setState] = useState(() => readDraft(place));
  const latest = useRef(state);
  const [tab, setTab] = useQuery("tab", parts[0] === "Pod" || parts[0] === "Node" ? "objects" : "config", TABS);
  const [refusal, setRefusal] = useState("");
  const set = (draft) => {
    latest.current = draft;
    writeDraft(place, draft);
    setState(draft);
  };
  const change = (more) => set({ ...latest.current, ...more });
  // A change of the list can be undone; what is typed, the browser undoes.
  const list = (more) => {
    const { past = [], ...now } = latest.current;
    set({ ...now, ...more, past: [...past.slice(1 - MOST_UNDONE), now] });
  };
  const undo = () => {
    const past = latest.current.past ?? [];
    set({ ...past.at(-1), past: past.slice(0, -1) });
  };
  const awaited = useAsked({ parts, run, cluster, latest, change: list, refuse: setRefusal });
  const { past = [], ...draft } = state;
  const anything = JSON.stringify(draft) !== JSON.stringify(EMPTY);
  return html`<div class="whatif-view">
    <div class="title"><h1>What if</h1>
      <p>mooring tries changes on a copy of the run <strong>${run.name}</strong>, never on a real cluster.</p>
      ${past.length > 0 && html`<button type="button" class="small" onClick=${undo}>Undo</button>`}
      ${anything && html`<button type="button" class="small" onClick=${() => list(EMPTY)}>Drop all changes</button>`}</div>
    ${refusal && html`<p class="problems" role="alert">${refusal}</p>`}
    <div class="whatif-edit">
      <${Switch} label="Edit" value=${tab} onChange=${setTab} options=${[
        ["config", "Configuration"],
        ["objects", "Pods and nodes"],
      ]} />
      ${
        tab === "config"
          ? html`<${ConfigEditor} run=${run} text=${state.config} awaited=${awaited} onText=${(config) => change({ config })} />`
          : html`<${ObjectsEditor} run=${run} text=${state.objects} awaited=${awaited} onText=${(objects) => change({ objects })} />`
      }
    </div>
    <div class="whatif-side">
      <${Adding} cluster=${cluster} run=${run} onAdd=${(more) => list({ changes: [...latest.current.changes, more] })} />
      <${ChangeList} draft=${draft} list=${list} />
      <${RunForm} run=${run} state=${draft} change=${change} />
      <${Export} run=${run} changes=${changesOf(draft)} />
      <${Room} cluster=${cluster} run=${run} />
      <${Runs} run=${run} />
    </div>
  </div>`;
}

const TABS = ["config", "objects"];

// What the address asks for: a pod or node to edit, a run to change, or a node to do without. It is added to what is
// there already, once: a reload and «back» bring back what was made of it. Whether it is still to come: what is typed
// until then would be mixed with it.
function useAsked({ parts, run, cluster, latest, change, refuse }) {
  const asked = `${run.id} ${parts.join("/")}`;
  const [over, setOver] = useState(null);
  useEffect(() => {
    const [what, ...rest] = parts;
    const key = rest.join("/");
    let here = true;
    const done = (problem, more) => {
      if (!here) return;
      refuse(problem);
      if (more) change(more());
      if (!problem) markTaken();
      setOver(asked);
    };
    const take = (answer, add) => answer.then((value) => done("", () => add(value)), (error) => done(error.message));
    if (!what || isTaken()) done("");
    else if (what === "without") done(...without(cluster, latest.current.changes, key));
    else if (what === "again") take(get(`api/runs/${Number(key)}/changes`), ({ changes }) => draftOf(changes));
    else if (what === "Pod" || what === "Node")
      take(
        ask(`api/runs/${run.id}/object?kind=${encodeURIComponent(what)}&key=${encodeURIComponent(key)}`),
        ({ text }) => ({ objects: withObject(latest.current.objects, what, key, text) }),
      );
    else done(`The address asks for “${what}”, which cannot be changed.`);
    return () => {
      here = false;
    };
  }, [asked]);
  return over !== asked;
}

// The problem, or what becomes of the draft.
function without(cluster, changes, key) {
  if (cluster.indexOfNode(key) < 0) return [`There is no node “${key}” in this run.`];
  const wanted = { remove: [{ kind: "Node", key }] };
  const isKnown = changes.some((each) => JSON.stringify(each) === JSON.stringify(wanted));
  return ["", isKnown ? null : () => ({ changes: [...changes, wanted] })];
}

// An object that is edited already stays as it is; another one is put behind it.
function withObject(objects, kind, key, text) {
  const mark = `# ${kind} ${key}`;
  if (objects.split("\n").includes(mark)) return objects;
  const before = objects.trim() ? `${objects.trimEnd()}\n---\n` : "";
  return `${before}${mark}\n${text}`;
}

function ConfigEditor({ run, text, onText, awaited: asked }) {
  const { value, error } = useAnswer(`api/runs/${run.id}/config`);
  const shown = text ?? value?.text ?? "";
  const check = useCheck(run.id, "config", text);
  const changed = text !== null && text !== value?.text;
  // What is typed into the empty editor would be mixed with the text that is still to come.
  const awaited = asked || (text === null && value === null && error === null);
  return html`<div>
    <${Problems} error=${error} />
    ${!asked && html`<${Weights} text=${shown} onText=${onText} />`}
    <${Editor} id="config-text" label="Scheduler configuration" text=${shown} onText=${onText}
      problems=${check?.problems} disabled=${awaited} />
    <${Said} id="config-text" text=${changed ? text : null} check=${check} fine="A valid configuration."
      unchanged=${awaited ? "Reading …" : "This is the configuration of the run; change it to try another."} />
    ${changed && html`<button type="button" class="small" onClick=${() => onText(null)}>Undo all edits</button>`}
  </div>`;
}

function Weights({ text, onText }) {
  const weights = weightsIn(text);
  if (!weights.length) return null;
  const profiles = new Set(weights.map((each) => each.profile));
  return html`<fieldset class="weights"><legend>Weights of scores</legend>
    ${weights.map(
      (each) => html`<${Weight} label=${`${profiles.size > 1 ? `${each.profile} ` : ""}${each.plugin}`} weight=${each.weight}
        onWeight=${(weight) => onText(withWeight(text, each.line, weight))} />`,
    )}
  </fieldset>`;
}

function Weight({ label, weight, onWeight }) {
  const [wrong, setWrong] = useState("");
  const onInput = (event) => {
    const { value } = event.currentTarget;
    const number = Number(value);
    const fine = value !== "" && Number.isInteger(number) && number >= 0 && number <= 100;
    setWrong(fine ? "" : "a whole number from 0 to 100");
    if (fine) onWeight(number);
  };
  return html`<label class="field"><span>${label}</span>
    <input type="number" min="0" max="100" value=${wrong ? undefined : weight} aria-invalid=${wrong ? "true" : "false"}
      onInput=${onInput} />${wrong && html`<span class="state bad" role="alert">${wrong}</span>`}</label>`;
}

function ObjectsEditor({ run, text, onText, awaited }) {
  const check = useCheck(run.id, "objects", text);
  return html`<div>
    <p class="quiet">Manifests as YAML. An object with the name of an existing one replaces it; others are added.
      The page of a pod or node has a button that copies it here.</p>
    <${Editor} id="objects-text" label="Manifests" text=${text} onText=${onText} problems=${check?.problems}
      disabled=${awaited} />
    <${Said} id="objects-text" text=${text.trim() ? text : null} check=${check} fine=${check?.found?.join(", ")}
      unchanged=${awaited ? "Reading …" : "No changes yet."} />
    ${text && html`<button type="button" class="small" onClick=${() => onText("")}>Clear</button>`}
  </div>`;
}

function Said({ id, text, check, fine, unchanged }) {
  return html`<div id=${`${id}-check`} class="check" role="status">
    ${
      text === null
        ? html`<p class="quiet">${unchanged}</p>`
        : check === null
          ? html`<p class="quiet">Checking …</p>`
          : check.ok
            ? html`<p class="state ok"><span aria-hidden="true">✓</span> ${fine}</p>`
            : html`<p class="state bad"><span
              aria-hidden="true">▲</span> ${count(check.problems.length, "problem")}</p>
        <${ProblemList} problems=${check.problems} onLine=${(line) => goToLine(id, line)} />`
    }
  </div>`;
}

const KINDS = [
  ["addNodes", "add nodes"],
  ["nodes", "add nodes of a machine type"],
  ["drain", "drain nodes"],
  ["lose", "lose a zone"],
  ["scale", "scale a workload"],
];
const MOST_OFFERED = 300;

// One form for all changes that need no YAML. The server knows whether a change can be made; here only what is
// misspelt is told.
function Adding({ cluster, onAdd }) {
  // Where there is no node, there is none to be like.
  const [kind, setKind] = useState(cluster.nodeCount ? "addNodes" : "nodes");
  const [text, setText] = useState(firstOf(cluster, kind));
  const [number, setNumber] = useState(1);
  const fields = { addNodes: "like node", nodes: "Machines", drain: "Nodes", lose: "Zone", scale: "Workload" };
  const given = text.trim();
  const wrong = given ? problemOf(cluster, kind, given) : "";
  const numbered = kind === "addNodes" || kind === "scale";
  const fine = given && !wrong && (!numbered || (Number.isInteger(number) && number >= (kind === "scale" ? 0 : 1)));
  const add = (event) => {
    event.preventDefault();
    onAdd(madeOf(kind, given, number));
    setText(firstOf(cluster, kind));
  };
  const choose = (to) => {
    setKind(to);
    setText(firstOf(cluster, to));
  };
  return html`<section class="box" aria-labelledby="nodes-title">
    <h2 id="nodes-title">Add a change</h2>
    <form class="add-nodes" onSubmit=${add}>
      <${Choice} label="Change" value=${kind} onChange=${choose} options=${KINDS} />
      ${
        numbered &&
        html`<label class="field"><span>${kind === "scale" ? "Replicas" : "Add"}</span><input type="number"
        min=${kind === "scale" ? 0 : 1} max="10000" value=${Number.isNaN(number) ? "" : number}
        onInput=${(e) => setNumber(e.currentTarget.value === "" ? NaN : Number(e.currentTarget.value))} /></label>`
      }
      <label class="field grow"><span>${fields[kind]}</span><input list=${`offered-${kind}`} value=${text}
        placeholder=${{ nodes: "3xm5.xlarge,zones=3", lose: "a zone, or label=value", drain: "n1,n2" }[kind] ?? ""}
        onInput=${(e) => setText(e.currentTarget.value)} /></label>
      <datalist id=${`offered-${kind}`}>${offered(cluster, kind).map((name) => html`<option value=${name}></option>`)}</datalist>
      <button type="submit" disabled=${!fine}>Add</button>
    </form>
    ${wrong && html`<p class="state bad"><span aria-hidden="true">▲</span> ${wrong}</p>`}
  </section>`;
}

function firstOf(cluster, kind) {
  return kind === "addNodes" ? (cluster.nodeNames[0] ?? "") : "";
}

function madeOf(kind, text, number) {
  if (kind === "addNodes") return { addNodes: [{ like: text, count: number }] };
  if (kind === "scale") return { scale: { workload: text, replicas: number } };
  return { [kind]: text };
}

function offered(cluster, kind) {
  if (kind === "addNodes" || kind === "drain") return cluster.nodeNames.slice(0, MOST_OFFERED);
  if (kind === "lose") return zonesOf(cluster).slice(0, MOST_OFFERED);
  return kind === "scale" ? workloadsOf(cluster).slice(0, MOST_OFFERED) : [];
}

const ZONE = "topology.kubernetes.io/zone";

function zonesOf(cluster) {
  const found = cluster.groups(ZONE).map(({ name }) => name);
  return found.filter((name) => name !== "(none)" && name !== "(empty)").sort();
}

function workloadsOf(cluster) {
  return [...new Set(cluster.map.pods.workload)].map((code) => cluster.map.strings[code]).filter(Boolean).sort();
}

function problemOf(cluster, kind, text) {
  if (kind === "addNodes") return cluster.indexOfNode(text) < 0 ? "No such node." : "";
  if (kind === "drain") {
    if (!/[^\s,]/.test(text)) return "Name a node.";
    const unknown = text.split(",").map((each) => each.trim()).filter((each) => each && cluster.indexOfNode(each) < 0);
    return unknown.length ? `No such node: ${unknown.join(", ")}.` : "";
  }
  if (kind === "lose" && text.includes("=")) return hasLabel(cluster, text) ? "" : `No node has ${text}.`;
  if (kind === "lose" && !text.includes("=")) return zonesOf(cluster).includes(text) ? "" : "No such zone.";
  if (kind === "nodes") return /^([1-9]\d*x)?[a-z1-9]/i.test(text) ? "" : "Write it as 3xm5.xlarge.";
  if (kind === "scale") return workloadsOf(cluster).includes(text) ? "" : "No such workload.";
  return "";
}

function hasLabel(cluster, text) {
  const [key, ...rest] = text.split("=");
  return cluster.groups(key).some(({ name }) => name === rest.join("=")) && key !== "";
}

// All that is changed, in one list.
function ChangeList({ draft, list }) {
  const rows = [];
  if (draft.objects.trim())
    rows.push([sentenceOf({ objects: draft.objects }), "what is edited as YAML", () => list({ objects: "" })]);
  draft.changes.forEach((each, i) => {
    const text = sentenceOf(each);
    rows.push([text, text, () => list({ changes: draft.changes.filter((_, k) => k !== i) })]);
  });
  if (draft.config !== null) rows.push(["another configuration", "the configuration", () => list({ config: null })]);
  return html`<section class="box" aria-labelledby="changes-title"><h2 id="changes-title">Changes</h2>
    ${!rows.length && html`<p class="quiet">None yet. They are made in the order of this list.</p>`}
    <ol class="drafted">${rows.map(
      ([text, name, drop]) => html`<li>${text}
      <button type="button" class="text" aria-label=${`Drop ${name}`} onClick=${drop}>drop</button></li>`,
    )}</ol>
  </section>`;
}

// The list as a file, and the command that reads it.
function Export({ run, changes }) {
  const [made, setMade] = useState(null);
  const asked = JSON.stringify(changes);
  useEffect(() => setMade(null), [asked, run.id]);
  if (!changes.length && run.base === null) return null;
  const start = () =>
    post("api/export", { run: run.id, changes }).then(
      (value) => setMade({ value }),
      (error) => setMade({ error }),
    );
  return html`<section class="box" aria-labelledby="export-title"><h2 id="export-title">Export</h2>
    ${!made && html`<button type="button" class="small" onClick=${start}>Show as YAML and as a command</button>`}
    <${Problems} error=${made?.error} />
    ${made?.value && html`<${Exported} ...${made.value} />`}
  </section>`;
}

function Exported({ text, file, command }) {
  const address = useMemo(() => URL.createObjectURL(new Blob([text], { type: "application/yaml" })), [text]);
  useEffect(() => () => URL.revokeObjectURL(address), [address]);
  return html`<div class="exported">
    <label class="field grow"><span>Changes</span>
      <textarea readonly rows="10" spellcheck="false" value=${text}></textarea></label>
    <p><a href=${address} download=${file}>Save as ${file}</a></p>
    <label class="field grow"><span>Command</span><input readonly value=${command} onFocus=${(e) => e.currentTarget.select()} /></label>
  </div>`;
}

// How many more pods like one of a workload fit, as `mooring capacity` counts them.
function Room({ cluster, run }) {
  const [workload, setWorkload] = useState("");
  const [asked, setAsked] = useState(null);
  const pod = useMemo(() => podOf(cluster, workload), [cluster, workload]);
  const { job, value, error } = useWork(`api/runs/${run.id}/capacity`, asked && { pod: asked });
  const ask = (event) => {
    event.preventDefault();
    setAsked(pod);
  };
  return html`<section class="box" aria-labelledby="room-title"><h2 id="room-title">Capacity</h2>
    <form class="add-nodes" onSubmit=${ask}>
      <label class="field grow"><span>How many more pods like</span><input list="offered-scale-room" value=${workload}
        placeholder="a workload, or namespace/pod" onInput=${(e) => setWorkload(e.currentTarget.value)} /></label>
      <datalist id="offered-scale-room">${offered(cluster, "scale").map((name) => html`<option value=${name}></option>`)}</datalist>
      <button type="submit" disabled=${!pod}>Count</button>
    </form>
    <${JobProgress} job=${job} />
    <${Problems} error=${error} />
    ${value && html`<p role="status">${roomSentence(value)}</p>`}
  </section>`;
}

function podOf(cluster, text) {
  if (!text) return "";
  if (cluster.indexOfPod(text) >= 0) return text;
  const code = cluster.map.strings.indexOf(text);
  const found = code > 0 ? cluster.map.pods.workload.indexOf(code) : -1;
  return found >= 0 ? cluster.podKey(found) : "";
}

function roomSentence({ pod, more, limited, stoppedBy, nodes }) {
  if (limited) return `${count(more, "more pod")} like ${pod} fit, and maybe more: mooring stopped counting.`;
  if (!more) return `No more pod like ${pod} fits: ${stoppedBy}`;
  return `${count(more, "more pod")} like ${pod} ${more === 1 ? "fits" : "fit"}, on ${count(nodes, "node")}. Then: ${stoppedBy}`;
}

function RunForm({ run, state, change }) {
  const [failed, setFailed] = useState(null);
  const [busy, setBusy] = useState(false);
  const body = bodyOf(run, state);
  const anything = Object.keys(body).some((key) => key !== "base" && key !== "name");
  const start = (event) => {
    event.preventDefault();
    setBusy(true);
    setFailed(null);
    post("api/runs", body).then(
      (made) => {
        go(linkTo(made.run, "compare", String(run.id), String(made.run)));
      },
      (error) => {
        setFailed(error);
        setBusy(false);
      },
    );
  };
  return html`<section class="box" aria-labelledby="run-title"><h2 id="run-title">Run</h2>
    <form onSubmit=${start}>
      <label class="field grow"><span>Name</span><input value=${state.name} placeholder="name of this run" maxlength="80"
        onInput=${(e) => change({ name: e.currentTarget.value })} /></label>
      <button type="submit" class="main" disabled=${!anything || busy}>Run and compare</button>
    </form>
    ${!anything && html`<p class="quiet">Change something first.</p>`}
    <${Problems} error=${failed} />
  </section>`;
}

function bodyOf(run, state) {
  const body = { base: run.id };
  if (state.name.trim()) body.name = state.name.trim();
  const changes = changesOf(state);
  if (changes.length) body.changes = changes;
  return body;
}

// The whole list in the order in which it is made: manifests, then what was added, then the configuration.
function changesOf(draft) {
  const changes = [...draft.changes];
  if (draft.objects.trim()) changes.unshift({ objects: draft.objects });
  if (draft.config !== null) changes.push({ config: draft.config });
  return changes;
}

// The other way round, for a run that is to be changed and run again. A list that begins otherwise stays a list.
function draftOf(changes) {
  const left = [...changes];
  const isOnly = (each, key) => each && Object.keys(each).length === 1 && key in each;
  const objects = isOnly(left[0], "objects") ? left.shift().objects : "";
  const config = isOnly(left.at(-1), "config") ? left.pop().config : null;
  return { ...EMPTY, objects, config, changes: left };
}

// One change in words, as the server says them too.
function sentenceOf(each) {
  const parts = [];
  for (const { kind, key } of each.remove ?? []) parts.push(`without ${kind === "Node" ? "" : `${kind} `}${key}`);
  for (const { like, count: number = 1 } of each.addNodes ?? []) parts.push(`${count(number, "node")} like ${like}`);
  if (each.nodes) parts.push(`add ${each.nodes}`);
  if (each.scale) parts.push(`scale ${each.scale.workload} to ${each.scale.replicas.toLocaleString("en")}`);
  if (each.drain) parts.push(`drain ${each.drain}`);
  if (each.lose) parts.push(`lose ${each.lose}`);
  if (each.objects) parts.push(`manifests: ${headsOf(each.objects).join(", ")}`);
  if (each.config) parts.push("another configuration");
  return parts.join("; ");
}

function headsOf(text) {
  const documents = text.split(/^---.*$/m).filter((each) => each.trim());
  return documents.map((each) => {
    const word = (key) => each.match(new RegExp(`^\\s*(?:metadata: *\\{.*)?${key}: *([\\w./-]+)`, "m"))?.[1] ?? "";
    return `${word("kind")} ${word("name")}`.trim() || "?";
  });
}

function Runs({ run }) {
  const { session } = useSession();
  const isThere = (id) => session.runs.some((each) => each.id === id);
  return html`<section class="box" aria-labelledby="runs-title"><h2 id="runs-title">Runs so far</h2>
    <ul class="runs">${session.runs.map(
      (each) => html`<li>
      <a href=${linkTo(each.id, "map")}>${each.name}</a>
      <span class="quiet">${each.state === "ready" && each.summary ? `${count(each.summary.pending, "pod")} pending` : each.state}</span>
      ${
        each.changes.some((change) => change !== each.name) &&
        html`<span
        class="quiet changes">${each.changes.join("; ")}</span>`
      }
      ${
        isThere(each.base) &&
        html`<a
        href=${linkTo(each.id, "compare", String(each.base), String(each.id))}>compare</a>`
      }
      ${
        each.base !== null &&
        html`<a aria-label=${`Change ${each.name} and run again`} href=${linkTo(isThere(each.base) ? each.base : 1, "whatif", "again", String(each.id))}>change</a>`
      }
      ${
        each.id !== 1 &&
        each.id !== run.id &&
        html`<button type="button" class="text"
        aria-label=${`Delete ${each.name}`} onClick=${() => remove(`api/runs/${each.id}`)}>delete</button>`
      }
    </li>`,
    )}</ul>
  </section>`;
}

function OnlyInUi({ run }) {
  const { value } = useAnswer(`api/runs/${run.id}/config`);
  return html`<div class="whatif-view report">
    <div class="title"><h1>What if</h1>
      <p>A report cannot run the scheduler.
      To try changes, open the cluster with <code>mooring ui</code>.</p></div>
    <div class="whatif-edit"><h2>The configuration of this run</h2>
      <div><${Editor} id="config-text" label="Scheduler configuration" text=${value?.text ?? ""}
        onText=${() => {}} disabled /><p id="config-text-check"></p></div>
      <p><a href=${link("map")}>Back to the map</a></p></div>
  </div>`;
}
