// What if: another configuration, a changed pod or node, more nodes or fewer; run, and see the difference.
import { useEffect, useRef, useState } from "preact-hooks";
import { ask, isReport, post, remove, useAnswer } from "mooring/api";
import { Editor, goToLine, useCheck } from "mooring/editor";
import { html } from "mooring/html";
import { ProblemList, Problems, Switch } from "mooring/parts";
import { go, link, linkTo, useQuery } from "mooring/route";
import { useSession } from "mooring/session";
import { weightsIn, withWeight } from "mooring/weights";
import { count } from "mooring/words";

const EMPTY = { config: null, objects: "", addNodes: [], remove: [], name: "" };
const KEPT = "mooring.draft.";

// Edits are kept for the tab, by run: through other views, «back», a reload and a run that was cancelled.
function readDraft(run) {
  try {
    return { ...EMPTY, ...JSON.parse(sessionStorage.getItem(KEPT + run) ?? "{}") };
  } catch {
    return EMPTY;
  }
}

function writeDraft(run, draft) {
  try {
    sessionStorage.setItem(KEPT + run, JSON.stringify(draft));
  } catch {
    // It lasts as long as the view.
  }
}

export function WhatIfView(props) {
  return isReport ? html`<${OnlyInUi} run=${props.run} />` : html`<${WhatIf} key=${props.run.id} ...${props} />`;
}

function WhatIf({ cluster, run, parts }) {
  const [state, setState] = useState(() => readDraft(run.id));
  const latest = useRef(state);
  const [tab, setTab] = useQuery("tab", parts[0] === "Pod" || parts[0] === "Node" ? "objects" : "config");
  const change = (more) => {
    latest.current = { ...latest.current, ...more };
    writeDraft(run.id, latest.current);
    setState(latest.current);
  };
  useAsked(parts, run, latest, change);
  const anything = JSON.stringify(state) !== JSON.stringify(EMPTY);
  return html`<div class="whatif-view">
    <div class="title"><h1>What if</h1>
      <p>mooring tries changes on a copy of <strong>${run.name}</strong>, never on a real cluster.</p>
      ${anything && html`<button type="button" class="small" onClick=${() => change(EMPTY)}>Drop all changes</button>`}</div>
    <div class="whatif-edit">
      <${Switch} label="Edit" value=${tab} onChange=${setTab} options=${[
        ["config", "Configuration"],
        ["objects", "Pods and nodes"],
      ]} />
      ${
        tab === "config"
          ? html`<${ConfigEditor} run=${run} text=${state.config} onText=${(config) => change({ config })} />`
          : html`<${ObjectsEditor} run=${run} text=${state.objects} onText=${(objects) => change({ objects })} />`
      }
    </div>
    <div class="whatif-side">
      <${NodesForm} cluster=${cluster} state=${state} change=${change} />
      <${RunForm} run=${run} state=${state} change=${change} />
      <${Runs} run=${run} />
    </div>
  </div>`;
}

// What the address asks for: a pod or node to edit, or a node to do without. It is added to what is there already.
function useAsked(parts, run, latest, change) {
  useEffect(() => {
    const [what, ...rest] = parts;
    const key = rest.join("/");
    if (what === "without") {
      if (!latest.current.remove.includes(key)) change({ remove: [...latest.current.remove, key] });
      return;
    }
    if (what !== "Pod" && what !== "Node") return;
    ask(
      `api/runs/${run.id}/object?kind=${encodeURIComponent(what)}&key=${encodeURIComponent(key)}`,
    ).then(
      ({ text }) => change({ objects: withObject(latest.current.objects, what, key, text) }),
      (error) => change({ objects: `# ${error.message}\n${latest.current.objects}` }),
    );
  }, [parts.join("/"), run.id]);
}

// An object that is edited already stays as it is; another one is put behind it.
function withObject(objects, kind, key, text) {
  const mark = `# ${kind} ${key}`;
  if (objects.split("\n").includes(mark)) return objects;
  const before = objects.trim() ? `${objects.trimEnd()}\n---\n` : "";
  return `${before}${mark}\n${text}`;
}

function ConfigEditor({ run, text, onText }) {
  const { value, error } = useAnswer(`api/runs/${run.id}/config`);
  const shown = text ?? value?.text ?? "";
  const check = useCheck(run.id, "config", text);
  const changed = text !== null && text !== value?.text;
  return html`<div>
    <${Problems} error=${error} />
    <${Weights} text=${shown} onText=${onText} />
    <${Editor} id="config-text" label="Scheduler configuration" text=${shown} onText=${onText}
      problems=${check?.problems} />
    <${Said} id="config-text" text=${changed ? text : null} check=${check} fine="A valid configuration."
      unchanged="This is the configuration of the run; change it to try another." />
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

function ObjectsEditor({ run, text, onText }) {
  const check = useCheck(run.id, "objects", text);
  return html`<div>
    <p class="quiet">Manifests as YAML. An object with the name of an existing one replaces it; others are added.
      The page of a pod or node has a button that copies it here.</p>
    <${Editor} id="objects-text" label="Manifests" text=${text} onText=${onText} problems=${check?.problems} />
    <${Said} id="objects-text" text=${text.trim() ? text : null} check=${check} fine=${check?.found?.join(", ")}
      unchanged="No changes yet." />
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

function NodesForm({ cluster, state, change }) {
  const [like, setLike] = useState("");
  const [number, setNumber] = useState(1);
  const first = like || cluster.nodeNames[0] || "";
  const known = cluster.indexOfNode(first) >= 0;
  const add = (event) => {
    event.preventDefault();
    change({ addNodes: [...state.addNodes, { like: first, count: number }] });
  };
  return html`<section class="box" aria-labelledby="nodes-title">
    <h2 id="nodes-title">Nodes</h2>
    <form class="add-nodes" onSubmit=${add}>
      <label class="field"><span>Add</span><input type="number" min="1" max="1000" value=${number}
        onInput=${(e) => setNumber(Number(e.currentTarget.value))} /></label>
      <label class="field grow"><span>like node</span><input list="node-names" value=${first}
        onInput=${(e) => setLike(e.currentTarget.value)} /></label>
      <datalist id="node-names">${cluster.nodeNames.slice(0, 300).map(
        (name) => html`<option
        value=${name}></option>`,
      )}</datalist>
      <button type="submit" disabled=${!known || !(number >= 1)}>Add</button>
    </form>
    ${first && !known && html`<p class="state bad"><span aria-hidden="true">▲</span> No such node.</p>`}
    <ul class="drafted">
      ${state.addNodes.map(
        (each, i) => html`<li>${count(each.count, "node")} like <code>${each.like}</code>
        <button type="button" class="text" aria-label=${`Do not add nodes like ${each.like}`}
          onClick=${() => change({ addNodes: state.addNodes.filter((_, k) => k !== i) })}>drop</button></li>`,
      )}
      ${state.remove.map(
        (name) => html`<li>without <code>${name}</code>
        <button type="button" class="text" aria-label=${`Keep ${name}`}
          onClick=${() => change({ remove: state.remove.filter((each) => each !== name) })}>drop</button></li>`,
      )}
    </ul>
  </section>`;
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
  if (state.config !== null) body.config = state.config;
  if (state.objects.trim()) body.objects = state.objects;
  if (state.addNodes.length) body.addNodes = state.addNodes;
  if (state.remove.length) body.remove = state.remove.map((key) => ({ kind: "Node", key }));
  return body;
}

function Runs({ run }) {
  const { session } = useSession();
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
        each.base !== null &&
        html`<a
        href=${linkTo(each.id, "compare", String(each.base), String(each.id))}>compare</a>`
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
