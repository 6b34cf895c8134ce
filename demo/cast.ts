/** Lists the users and clients of the demo, and how each client behaves. */
import type { RuntimeOptions } from '../src/clients/runtime/index.ts';

/**
 * How a client behaves. `deploys`: from time to time its process leaves, and a new process replaces it. `drops`: its
 * socket breaks from time to time, and it reconnects as the same instance. `sleeps`: it disconnects and reconnects as a
 * new instance. `falls`: its process exits without closing its link.
 */
export type Habit = 'deploys' | 'drops' | 'sleeps' | 'falls';

/** One client in a separate process. */
export type CastMember = {
  readonly userId: string;
  readonly clientId: string;
  readonly clientType: RuntimeOptions['clientType'];
  readonly habit: Habit;
  /** A description for the greeting. */
  readonly about: string;
};

export const CAST: readonly CastMember[] = [
  {
    userId: 'alice',
    clientId: 'ops-console',
    clientType: 'console',
    habit: 'deploys',
    about: 'is replaced by a new instance from time to time',
  },
  {
    userId: 'alice',
    clientId: 'phone',
    clientType: 'mobile',
    habit: 'sleeps',
    about: 'sleeps from time to time, and calls wait for it; asks before it takes a photo',
  },
  {
    userId: 'bob',
    clientId: 'kiosk',
    clientType: 'web',
    habit: 'drops',
    about: 'loses its link and resumes; workers in two of its windows build reports',
  },
  {
    userId: 'bob',
    clientId: 'printer',
    clientType: 'console',
    habit: 'falls',
    about: 'prints one page at a time, crashes and is started again',
  },
];

/** The client that runs in a web page. */
export const PAGE = { userId: 'carol', clientId: 'page', clientType: 'browser' } as const;
