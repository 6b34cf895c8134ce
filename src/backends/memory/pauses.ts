/** Core's PauseStore in memory: sets, ends and lists the pauses that transactions check. */
import type { Mailboxes } from './commands.ts';
import type { ClientQueue, Entry, Ledger } from './ledger.ts';
import { keyOf, type CommandKey } from '../../core/ids.ts';
import { PAUSES, PAUSES_OF_ADMINS, PAUSES_OF_PERSONS, PAUSES_PER_USER } from '../../core/limits.ts';
import {
  PauseSet,
  coverOf,
  holds,
  type Pause,
  type PauseCover,
  type PauseReach,
  type PauseStore,
} from '../../core/pauses/pause.ts';
import type { Clock } from '../../core/ports.ts';

type PausesOptions = {
  readonly clock: Pick<Clock, 'now'>;
  readonly ledger: Ledger;
  readonly mailboxes: Pick<Mailboxes, 'post'>;
  readonly pauses: PauseSet;
};

/** The number of the only partition of this store. */
const WHOLE: readonly number[] = [0];

/** Creates core's PauseStore over the set of pauses that transactions check. Every method answers in the same tick. */
export function createMemoryPauses({ clock, ledger, mailboxes, pauses }: PausesOptions) {
  const clientsOf = ({ userId, clientId }: Pick<PauseCover, 'userId' | 'clientId'>): Iterable<ClientQueue> => {
    if (userId === null) return ledger.clients().filter(({ head }) => clientId === null || clientId === head.clientId);
    if (clientId === null) return ledger.clientsOf(userId);
    const found = ledger.peekClient({ userId, clientId });
    return found ? [found] : [];
  };
  /** Posts the commands that no pause holds any more to the nodes of their links, which offer them to the links. */
  const offer = (ended: readonly Pause[]): void => {
    for (const pause of ended) {
      const covers = coverOf(pause);
      for (const { waiting } of clientsOf(pause))
        for (const { command } of waiting)
          if (command.stage === 'queued' && command.nodeId !== null && covers(command))
            if (!pauses.of(command, clock.now()))
              mailboxes.post(command.nodeId, { kind: 'command', key: keyOf(command) });
    }
  };
  return {
    permitMs: Infinity,
    quietMs: 0,
    parts: () => WHOLE,
    deciderOf: () => null,
    keep(_part: number, pause: Pause): 'kept' | 'full' | 'over' {
      if (pauses.hasEnded(pause.pauseId)) return 'over';
      if (!pauses.get(pause.pauseId) && isFull(pauses, pause)) return 'full';
      pauses.put(pause);
      return 'kept';
    },
    lift(_part: number, pauseId: string): Pause | null {
      const pause = pauses.end(pauseId);
      if (pause) offer([pause]);
      return pause;
    },
    lapse(): readonly Pause[] {
      if (pauses.size === 0) return [];
      const over = pauses.values().filter((pause) => !holds(pause, clock.now()));
      for (const { pauseId } of over) pauses.end(pauseId);
      offer(over);
      return over;
    },
    list: (userId: string | null) => ({
      rows: (userId === null ? pauses.values() : pauses.ofUser(userId)).filter((pause) => holds(pause, clock.now())),
    }),
    reach(_part: number, cover: PauseCover): PauseReach {
      const covers = coverOf(cover);
      const covered = (entries: Iterable<Entry>): number => count(entries, ({ command }) => covers(command));
      const reach = { clients: 0, queued: 0, running: 0 };
      for (const { binding, waiting, running } of clientsOf(cover)) {
        if (binding) reach.clients++;
        reach.queued += covered(waiting);
        reach.running += covered(running);
      }
      return reach;
    },
    covered(_part: number, cover: PauseCover, which: 'queued' | 'running', most: number): readonly CommandKey[] {
      const covers = coverOf(cover);
      const found: CommandKey[] = [];
      for (const client of clientsOf(cover))
        for (const { command } of which === 'queued' ? client.waiting : client.running) {
          if (found.length === most) return found;
          if (command.cancelRequestedAt === null && covers(command)) found.push(keyOf(command));
        }
      return found;
    },
  } satisfies PauseStore;
}

/**
 * Whether there is no room for another pause of this author. Rows are reserved for administrators, so that users cannot
 * fill the store; within a user's rows some are reserved for persons, so that clients cannot fill them.
 */
function isFull(pauses: PauseSet, { by, userId }: Pause): boolean {
  if (by.kind === 'admin') return pauses.size >= PAUSES;
  if (pauses.size >= PAUSES - PAUSES_OF_ADMINS) return true;
  const own = userId === null ? [] : pauses.ofUser(userId).filter(({ by: { kind } }) => kind !== 'admin');
  return own.length >= (by.kind === 'client' ? PAUSES_PER_USER - PAUSES_OF_PERSONS : PAUSES_PER_USER);
}

function count(entries: Iterable<Entry>, counts: (entry: Entry) => boolean): number {
  let total = 0;
  for (const entry of entries) if (counts(entry)) total++;
  return total;
}
