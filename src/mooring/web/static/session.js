// What every tab sees alike: the runs, the jobs, and whether the server can be heard.
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact-hooks";
import { follow, post, result } from "mooring/api";

export const SessionContext = createContext(null);

export function useSession() {
  return useContext(SessionContext);
}

export function useFollowedSession() {
  const [session, setSession] = useState(null);
  const [heard, setHeard] = useState(true);
  useEffect(() => follow(setSession, setHeard), []);
  return { session, heard };
}

export function runOf(session, id) {
  return session?.runs.find((run) => run.id === id) ?? null;
}

export function jobOf(session, id) {
  return session?.jobs.find((job) => job.id === id) ?? null;
}

// {job, value, error} of something that is worked out in the background; `body` null asks for nothing.
export function useWork(address, body) {
  const { session } = useSession();
  const [asked, setAsked] = useState({ id: null, value: null, error: null });
  const wanted = body === null ? null : JSON.stringify([address, body]);
  useEffect(() => {
    setAsked({ id: null, value: null, error: null });
    if (wanted === null) return undefined;
    let here = true;
    post(address, body).then(
      ({ job }) => here && setAsked({ id: job, value: null, error: null }),
      (error) => here && setAsked({ id: null, value: null, error }),
    );
    return () => {
      here = false;
    };
  }, [wanted]);
  const job = jobOf(session, asked.id);
  const over = job && job.state !== "running";
  useEffect(() => {
    if (!over) return undefined;
    let here = true;
    result(asked.id).then(
      (value) => here && setAsked((now) => ({ ...now, value })),
      (error) => here && setAsked((now) => ({ ...now, error })),
    );
    return () => {
      here = false;
    };
  }, [asked.id, over]);
  return { id: asked.id, job, value: asked.value, error: asked.error };
}
