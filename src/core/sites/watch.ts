import type { Cancel } from '../clock.ts';
import { isAway } from '../errors.ts';
import type { Deps } from '../deps.ts';
import { SESSION_WATCH_MS } from '../limits.ts';
import type { SiteSession } from './session.ts';

type Looker = (session: SiteSession | null) => void;

/** Says whether anything about a session that is watched here has ended. */
export interface SessionWatch {
  /**
   * Hands the session to `look`, as it then stands (null: forgotten): whenever it is hinted that something of it ended, and at least every
   * SESSION_WATCH_MS, whatever becomes of the hints.
   */
  watch(sessionId: string, look: Looker): Cancel;
  /** Who watches a session on this node. */
  count(sessionId: string): number;
}

export function createSessionWatch({ backend, clock, log }: Deps): SessionWatch {
  const lookers = new Map<string, Set<Looker>>();
  const hints = new Map<string, Cancel>();
  let stop: Cancel | null = null;

  const read = async (sessionIds: readonly string[]): Promise<void> => {
    const sessions = await backend.sessions.get(sessionIds);
    sessionIds.forEach((sessionId, i) => {
      for (const look of [...(lookers.get(sessionId) ?? [])]) look(sessions[i] ?? null);
    });
  };
  const readSafely = (sessionIds: readonly string[]): void => {
    read(sessionIds).catch((error: unknown) => {
      if (!isAway(error)) log.warn({ err: error }, 'watched sessions could not be read');
    });
  };
  const begin = (sessionId: string): Set<Looker> => {
    hints.set(
      sessionId,
      backend.bus.subscribe(`session:${sessionId}`, () => readSafely([sessionId])),
    );
    stop ??= clock.every(SESSION_WATCH_MS, () => readSafely([...lookers.keys()]));
    return new Set();
  };
  const end = (sessionId: string): void => {
    lookers.delete(sessionId);
    hints.get(sessionId)?.();
    hints.delete(sessionId);
    if (lookers.size > 0) return;
    stop?.();
    stop = null;
  };
  return {
    watch(sessionId, look) {
      const own: Looker = (session) => look(session);
      const all = lookers.get(sessionId) ?? begin(sessionId);
      lookers.set(sessionId, all);
      all.add(own);
      return () => {
        if (all.delete(own) && all.size === 0) end(sessionId);
      };
    },
    count: (sessionId) => lookers.get(sessionId)?.size ?? 0,
  };
}
