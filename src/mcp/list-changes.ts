/** Detects when a requester's list of tools has changed, while an event stream is open. */
import type { UserPrincipal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { AGENT_LIST_CHANGED_MS, FORGET_MS } from '../core/limits.ts';
import type { Cancel, Log } from '../core/ports.ts';
import { withAllActions } from './choose-client.ts';

type WatchOptions = {
  readonly core: Core;
  readonly log: Log;
  readonly requester: UserPrincipal;
  /** Returns an object that stays the same until the list changes. */
  readonly read: () => Promise<unknown>;
  readonly changed: () => void;
};

/** `known`: resolves when the list was read for the first time, or could not be; later changes are told. */
export type ListWatch = { readonly known: Promise<void>; readonly end: Cancel };

/**
 * Calls `changed` after the list has changed, at most once per AGENT_LIST_CHANGED_MS, until it is ended. It reads the
 * list after a client connected, disconnected or advertised, and again when a disconnected client is forgotten.
 */
export function watchList({ core, log, requester, read, changed }: WatchOptions): ListWatch {
  const { clock } = core;
  const events = core.connections.events(withAllActions(requester), null);
  const pending = new Map<number, Cancel>();
  let last: unknown;
  let reading: Promise<void> = Promise.resolve();
  const check = async (tells: boolean): Promise<void> => {
    const list = await read();
    if (tells && list !== last) changed();
    last = list;
  };
  const run = (tells: boolean): void => {
    reading = reading
      .then(() => check(tells))
      .catch((error: unknown) => log.debug({ err: error }, 'a list of tools was not read again'));
  };
  const later = (ms: number): void => {
    // A check is already pending and will cover this event.
    if (ms <= AGENT_LIST_CHANGED_MS && pending.has(ms)) return;
    pending.get(ms)?.();
    pending.set(
      ms,
      clock.after(ms, () => {
        pending.delete(ms);
        run(true);
      }),
    );
  };
  const follow = async (): Promise<void> => {
    for await (const _ of events) {
      later(AGENT_LIST_CHANGED_MS);
      later(FORGET_MS + AGENT_LIST_CHANGED_MS);
    }
  };
  run(false);
  follow().catch((error: unknown) => log.debug({ err: error }, 'changes of clients are not followed'));
  const end = (): void => {
    for (const cancel of pending.values()) cancel();
    pending.clear();
    void events.return();
  };
  return { known: reading, end };
}
