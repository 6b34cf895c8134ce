import type { RuntimeOptions } from '../clients/runtime/index.ts';

/**
 * What makes a client interesting. `deploys`: another process takes its place now and then, while its link is still up. `drops`: its
 * socket breaks now and then, and it resumes. `sleeps`: it goes away and comes back as a new instance. `falls`: its process dies.
 */
export type Habit = 'deploys' | 'drops' | 'sleeps' | 'falls';

/** One client that runs in a process of its own. */
export type Member = {
  readonly userId: string;
  readonly clientId: string;
  readonly clientType: RuntimeOptions['clientType'];
  readonly habit: Habit;
  /** For a reader, after "alice's ops-console (console):". */
  readonly about: string;
};

export const CAST: readonly Member[] = [
  {
    userId: 'alice',
    clientId: 'ops-console',
    clientType: 'console',
    habit: 'deploys',
    about: 'is replaced by a new instance now and then',
  },
  {
    userId: 'alice',
    clientId: 'phone',
    clientType: 'mobile',
    habit: 'sleeps',
    about: 'sleeps now and then: calls wait for it; asks before it takes a photo',
  },
  {
    userId: 'bob',
    clientId: 'kiosk',
    clientType: 'web',
    habit: 'drops',
    about: 'has a bad network: drops and resumes; workers in two of its windows build reports',
  },
  {
    userId: 'bob',
    clientId: 'printer',
    clientType: 'console',
    habit: 'falls',
    about: 'prints one page at a time, falls over and is started again',
  },
];

/** The client that lives in a page. */
export const PAGE = { userId: 'carol', clientId: 'page', clientType: 'browser' } as const;

export function memberOf(clientId: string): Member | undefined {
  return CAST.find((member) => member.clientId === clientId);
}
