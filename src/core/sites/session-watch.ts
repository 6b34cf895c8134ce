/** Reads the sessions with viewers on this node again, at each hint of a change and at regular intervals. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { SESSION_WATCH_MS } from '../limits.ts';
import type { Cancel } from '../ports.ts';
import type { SiteSession } from './site-session.ts';

export interface SessionReader {
  /** Called with the session as it is now; null if it is no longer stored. */
  sessionRead(session: SiteSession | null): void;
}

/**
 * The readers of one session. They are grouped by session, so that a hint costs time only for the readers of its
 * session.
 */
type Watched = { readonly readers: Set<SessionReader>; readonly stopHints: Cancel };

/** Watches sessions on this node for changes that may end a viewer's access. */
export type SessionWatch = ReturnType<typeof createSessionWatch>;

export function createSessionWatch({ backend, clock, log }: Deps) {
  const watched = new Map<string, Watched>();
  let stop: Cancel | null = null;

  const read = async (sessionIds: readonly string[]): Promise<void> => {
    // The readers are copied before the sessions are read. A reader that is added later may have a newer grant, which
    // the session that is read now does not contain.
    const waiting = sessionIds.map((sessionId) => [...(watched.get(sessionId)?.readers ?? [])]);
    const sessions = await backend.sessions.get(sessionIds);
    sessionIds.forEach((sessionId, i) => {
      for (const reader of waiting[i] ?? [])
        if (watched.get(sessionId)?.readers.has(reader)) reader.sessionRead(sessions[i] ?? null);
    });
  };
  const readSafely = (sessionIds: readonly string[]): void => {
    read(sessionIds).catch((error: unknown) => {
      if (!isStoreUnavailable(error)) log.warn({ err: error }, 'watched sessions could not be read');
    });
  };
  const begin = (sessionId: string): Watched => {
    stop ??= clock.every(SESSION_WATCH_MS, () => readSafely([...watched.keys()]));
    const stopHints = backend.bus.subscribe(`session:${sessionId}`, () => readSafely([sessionId]));
    const row = { readers: new Set<SessionReader>(), stopHints };
    watched.set(sessionId, row);
    return row;
  };
  return {
    /**
     * Passes the session to `reader` at each hint that the session or one of its grants ended, and at least every
     * SESSION_WATCH_MS, because hints may get lost.
     */
    watch(sessionId: string, reader: SessionReader): void {
      (watched.get(sessionId) ?? begin(sessionId)).readers.add(reader);
    },
    /** Removes a reader. Idempotent. */
    unwatch(sessionId: string, reader: SessionReader): void {
      const row = watched.get(sessionId);
      if (!row?.readers.delete(reader) || row.readers.size > 0) return;
      watched.delete(sessionId);
      row.stopHints();
      if (watched.size > 0) return;
      stop?.();
      stop = null;
    },
    /** Returns the number of readers of a session on this node. */
    count: (sessionId: string): number => watched.get(sessionId)?.readers.size ?? 0,
  };
}
