// Which moment of a run is looked at, and the clock that plays it. It stands in the address, so views and links agree:
// `at=90s` is a time, `at=12` so many changes, `at=end` the end.
import { useEffect, useMemo, useRef, useState } from "preact-hooks";
import { get, useAnswer } from "mooring/api";
import { Cluster, Reel, Scene } from "mooring/cluster";
import { pendingSoFar } from "mooring/pending";
import { setQuery } from "mooring/route";

// The place of `running` among the states of pods.
const RUNNING = 0;
const PLAYS_MS = 14000;

export const END = { step: null, seconds: null };

const clusters = new WeakMap();

function clusterOf(map) {
  if (!clusters.has(map)) clusters.set(map, new Cluster(map));
  return clusters.get(map);
}

// The run's cluster at its end, or as it was put in while the run is under way; null while it is not known.
export function useCluster(run) {
  const part = run?.state === "ready" ? "map" : run?.state === "running" && run.started ? "start" : null;
  const { value, error } = useAnswer(part && `api/runs/${run.id}/${part}`);
  // The start is shown until the end is there, so that views stay as they are.
  const last = useRef({});
  if (value) last.current = { run: run.id, cluster: clusterOf(value) };
  const cluster = part && last.current.run === run.id ? last.current.cluster : null;
  return { cluster, error };
}

// Whether this is the cluster before the run's end.
function isStart(cluster) {
  return Boolean(cluster?.map.start);
}

// Where the pods are so far, for a run that is under way; null for others. It follows the run's progress.
function useSceneSoFar(run, cluster, done) {
  const active = isStart(cluster);
  const so = useRef(null);
  const [scene, setScene] = useState(null);
  useEffect(() => {
    if (!active) {
      so.current = null;
      setScene(null);
      return;
    }
    if (so.current?.cluster === cluster) return;
    so.current = { cluster, places: Int32Array.from(cluster.map.start), next: 0, asking: false };
    setScene(new Scene(cluster, so.current.places.slice(), null, pendingSoFar));
  }, [active, cluster]);
  useEffect(() => {
    const now = so.current;
    if (!active || !now || now.asking) return;
    now.asking = true;
    // Each answer is another one, so it is not kept.
    get(`api/runs/${run.id}/moves?after=${now.next}`).then(
      ({ moves, next }) => {
        now.asking = false;
        if (so.current !== now || !moves.length) return;
        now.next = next;
        for (let i = 0; i < moves.length; i += 2) {
          now.places[moves[i]] = moves[i + 1];
          if (moves[i + 1] >= 0) cluster.map.pods.state[moves[i]] = RUNNING;
        }
        setScene(new Scene(cluster, now.places.slice(), null, pendingSoFar));
      },
      () => {
        now.asking = false;
      },
    );
  }, [active, cluster, done]);
  return active && scene?.cluster === cluster ? scene : null;
}

export function useEndScene(cluster) {
  return useMemo(() => cluster && Scene.atEnd(cluster), [cluster]);
}

// {step, seconds} of the address; the step is null at the end, undefined while it is not known.
function momentOf(at, cluster, reel) {
  const opens = cluster?.map.opensAt ?? null;
  if (at === "end" || (!at && opens === null)) return END;
  if (!reel) return { step: undefined, seconds: null };
  if (!at) return clamped(reel, opens, null);
  const number = Number.parseFloat(at);
  if (Number.isNaN(number) || number < 0) return END;
  if (!at.endsWith("s")) return clamped(reel, Math.round(number), null);
  return number >= reel.time.endSeconds ? END : clamped(reel, reel.stepBy(number), number);
}

function clamped(reel, step, seconds) {
  return step >= reel.steps && seconds === null ? END : { step: Math.min(step, reel.steps), seconds };
}

function atOf({ step, seconds }, opens) {
  if (step === null) return opens === null ? null : "end";
  return seconds === null ? String(step) : `${Number(seconds.toFixed(3))}s`;
}

// Steps are what is slid over: changes one by one, or the seconds at which they happened.
export function useMoments(run, job, cluster, query) {
  const soFar = useSceneSoFar(run, cluster, job?.done);
  const { value: time, error } = useAnswer(run?.state === "ready" ? `api/runs/${run.id}/time` : null);
  const reel = useMemo(() => (cluster && !isStart(cluster) && time ? new Reel(cluster, time) : null), [cluster, time]);
  const end = useEndScene(isStart(cluster) ? null : cluster);
  const { step, seconds } = useMemo(() => momentOf(query.at, cluster, reel), [query.at, cluster, reel]);
  const [playing, setPlaying] = useState(false);
  const hasTime = Boolean(time && time.endSeconds > 0 && time.changes.atSeconds.some((at) => at > 0));
  const bySeconds = hasTime && query.by !== "change";
  useEffect(() => setPlaying(false), [run?.id]);

  const scene = useMemo(() => {
    if (isStart(cluster)) return soFar;
    if (step === undefined) return null;
    return reel && step !== null ? reel.at(step) : end;
  }, [reel, step, end, soFar, cluster]);
  const setMoment = (moment) => setQuery({ at: atOf(moment, cluster?.map.opensAt ?? null) });
  const moments = {
    time,
    reel,
    underWay: isStart(cluster),
    error,
    step,
    scene,
    playing,
    hasTime,
    bySeconds,
    setBySeconds: (by) => setQuery({ by: by ? null : "change" }),
    steps: reel?.steps ?? 0,
    seconds: reel ? (seconds ?? reel.secondsAt(step ?? reel.steps)) : 0,
    go: (moment) => {
      setPlaying(false);
      setMoment(moment);
    },
    play: () => {
      if (!reel) return;
      if (step === null || step >= reel.steps) setMoment({ step: 0, seconds: bySeconds ? 0 : null });
      setPlaying(true);
    },
    stop: () => setPlaying(false),
  };
  usePlay(moments, setMoment, setPlaying);
  return moments;
}

function usePlay(moments, setMoment, setPlaying) {
  const latest = useRef(moments);
  latest.current = moments;
  useEffect(() => {
    if (!moments.playing) return undefined;
    let before = performance.now();
    let part = positionOf(latest.current);
    if (part >= 1) part = 0;
    let frame = requestAnimationFrame(function next(now) {
      part += (now - before) / PLAYS_MS;
      before = now;
      if (part >= 1) {
        setMoment(END);
        setPlaying(false);
        return;
      }
      setMoment(momentAt(latest.current, part));
      frame = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(frame);
  }, [moments.playing]);
}

// 0..1 along the slider.
export function positionOf(moments) {
  const { reel, step, bySeconds } = moments;
  if (!reel || step === null) return 1;
  if (bySeconds) return Math.min(1, moments.seconds / reel.time.endSeconds);
  return reel.steps ? step / reel.steps : 1;
}

export function momentAt(moments, part) {
  const { reel, bySeconds } = moments;
  if (part >= 1) return END;
  if (!bySeconds) return { step: Math.round(part * reel.steps), seconds: null };
  const seconds = part * reel.time.endSeconds;
  return { step: reel.stepBy(seconds), seconds };
}
