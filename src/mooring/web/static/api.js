// The one place where answers come from: the server that serves the page, or the report that holds it.
// What an address answers never changes, except for the session and results, so answers are kept.
import { useEffect, useState } from "preact-hooks";

const embedded = readEmbedded();
const kept = new Map();

// Whether this is a written report, where nothing more can be asked.
export const isReport = embedded !== null;

export class Refusal extends Error {
  constructor(status, { message, problems = [] }) {
    super(message);
    this.status = status;
    this.problems = problems;
  }
}

function readEmbedded() {
  const element = document.getElementById("mooring-data");
  return element ? JSON.parse(element.textContent) : null;
}

export function ask(address) {
  if (!kept.has(address)) {
    const answer = fetched(address);
    kept.set(address, answer);
    answer.catch(() => kept.delete(address));
  }
  return kept.get(address);
}

async function fetched(address) {
  if (!embedded) return request("GET", address);
  if (address in embedded) return unpacked(embedded[address]);
  throw new Refusal(404, {
    message: "The report does not contain this: it has a page for one pod of each cause, and for some of the placed pods.",
  });
}

// A page has a row for each node, so a report holds it compressed.
async function unpacked(answer) {
  if (!answer.gzip) return answer;
  const bytes = Uint8Array.from(atob(answer.gzip), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// What an address answers now, for the few that change.
export function get(address) {
  return request("GET", address);
}

export function post(address, body) {
  return request("POST", address, body);
}

export function remove(address) {
  return request("DELETE", address);
}

// Results may come to be there, so they are not kept until they are.
export function result(job) {
  return ask(`api/jobs/${job}/result`);
}

async function request(method, address, body) {
  if (embedded)
    throw new Refusal(405, {
      message: "A report cannot run the scheduler; open the cluster with `mooring ui`.",
    });
  let response;
  try {
    response = await fetch(address, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, { message: "The server does not answer; is `mooring ui` still running?" });
  }
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  throw new Refusal(response.status, answer?.error ?? { message: `The server answered ${response.status}.` });
}

// Calls back with the session whenever it changed, and with whether the server can be heard.
export function follow(onSession, onHeard) {
  if (embedded) {
    onSession(embedded["api/session"]);
    return () => {};
  }
  const events = new EventSource("api/events");
  events.addEventListener("session", (event) => {
    onHeard(true);
    onSession(JSON.parse(event.data));
  });
  // A server that was started again does not know this page: its cookie is another one.
  events.addEventListener("error", () => {
    fetch("api/session").then(
      ({ status }) => onHeard(status === 401 ? "restarted" : status < 400),
      () => onHeard(false),
    );
  });
  return () => events.close();
}

// {value, error} of an address, as far as it is known; null asks for nothing.
export function useAnswer(address) {
  const [state, set] = useState({ address: null, value: null, error: null });
  useEffect(() => {
    if (!address) return undefined;
    let wanted = true;
    ask(address).then(
      (value) => wanted && set({ address, value, error: null }),
      (error) => wanted && set({ address, value: null, error }),
    );
    return () => {
      wanted = false;
    };
  }, [address]);
  return state.address === address ? state : { value: null, error: null };
}
