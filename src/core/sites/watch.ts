import type { Cancel } from '../clock.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { Deps } from '../deps.ts';
import { SESSION_WATCH_MS } from '../limits.ts';
import type { SiteSession } from './session.ts';

export interface SessionReader {
  /** Called with the present session; null: it is no longer stored. */
  look(session: SiteSession | null): void;
}

/** Watches sessions on this node for whatever ends a viewer's access. */
export interface SessionWatch {
  /**
   * Passes the present session to `looker` whenever a hint says that something of it ended, and at least every
   * SESSION_WATCH_MS, because hints may be lost.
   */
  watch(sessionId: string, looker: SessionReader): void;
  /** Idempotent. */
  unwatch(sessionId: string, looker: SessionReader): void;
  /** Number of watchers of a session on this node. */
  count(sessionId: string): number;
}

/** Watchers of one session, so that a hint costs only as much as that session has watchers. */
type Watched = { readonly lookers: Set<SessionReader>; readonly stopHints: Cancel };

export function createSessionWatch({ backend, clock, log }: Deps): SessionWatch {
  const watched = new Map<string, Watched>();
  let stop: Cancel | null = null;

  const read = async (sessionIds: readonly string[]): Promise<void> => {
    const sessions = await backend.sessions.get(sessionIds);
    sessionIds.forEach((sessionId, i) => {
      for (const looker of [...(watched.get(sessionId)?.lookers ?? [])]) looker.look(sessions[i] ?? null);
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
    const row = { lookers: new Set<SessionReader>(), stopHints };
    watched.set(sessionId, row);
    return row;
  };
  return {
    watch(sessionId, looker) {
      (watched.get(sessionId) ?? begin(sessionId)).lookers.add(looker);
    },
    unwatch(sessionId, looker) {
      const row = watched.get(sessionId);
      if (!row?.lookers.delete(looker) || row.lookers.size > 0) return;
      watched.delete(sessionId);
      row.stopHints();
      if (watched.size > 0) return;
      stop?.();
      stop = null;
    },
    count: (sessionId) => watched.get(sessionId)?.lookers.size ?? 0,
  };
}
