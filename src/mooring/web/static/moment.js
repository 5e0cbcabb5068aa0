// Which moment of a run is looked at, and the clock that plays it. Views share it, so the map and the plots agree.
import { useEffect, useMemo, useRef, useState } from "preact-hooks";
import { useAnswer } from "mooring/api";
import { Cluster, Reel, Scene } from "mooring/cluster";

const PLAYS_MS = 14000;

export const END = { step: null, seconds: null };

const clusters = new WeakMap();

function clusterOf(map) {
  if (!clusters.has(map)) clusters.set(map, new Cluster(map));
  return clusters.get(map);
}

// The run's cluster at its end; null while it is not known.
export function useCluster(run) {
  const { value, error } = useAnswer(run?.state === "ready" ? `api/runs/${run.id}/map` : null);
  const cluster = value && clusterOf(value);
  return { cluster, error };
}

export function useEndScene(cluster) {
  return useMemo(() => cluster && Scene.atEnd(cluster), [cluster]);
}

// Steps are what is slid over: changes one by one, or the seconds at which they happened.
export function useMoments(run, cluster) {
  const { value: time, error } = useAnswer(run?.state === "ready" ? `api/runs/${run.id}/time` : null);
  const reel = useMemo(() => (cluster && time ? new Reel(cluster, time) : null), [cluster, time]);
  const end = useEndScene(cluster);
  // The step is how many changes were made, null at the end; seconds are where the reader put the slider.
  const [{ step, seconds }, setMoment] = useState(END);
  const [playing, setPlaying] = useState(false);
  const [bySeconds, setBySeconds] = useState(false);
  const hasTime = Boolean(time && time.endSeconds > 0 && time.changes.atSeconds.some((at) => at > 0));
  useEffect(() => {
    setMoment(END);
    setPlaying(false);
  }, [run?.id]);
  useEffect(() => setBySeconds(hasTime), [hasTime, run?.id]);

  const scene = useMemo(() => (reel && step !== null ? reel.at(step) : end), [reel, step, end]);
  const moments = {
    time,
    reel,
    error,
    step,
    scene,
    playing,
    hasTime,
    bySeconds: bySeconds && hasTime,
    setBySeconds,
    steps: reel?.steps ?? 0,
    seconds: reel ? (seconds ?? reel.secondsAt(step ?? reel.steps)) : 0,
    go: (moment) => {
      setPlaying(false);
      setMoment(moment);
    },
    play: () => {
      if (!reel) return;
      if (step === null || step >= reel.steps) setMoment({ step: 0, seconds: 0 });
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
