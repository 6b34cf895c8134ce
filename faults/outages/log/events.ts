/** Names one command everywhere. */
export type Key = { readonly user: string; readonly client: string; readonly command: string };

/** What the processes of a run write down. `wait` names one wait of one caller; times are in the stamp. */
export type FaultEvent =
  /** A caller is about to ask a relay. `budgetMs`: how long the command may take from now. */
  | (Key & {
      readonly event: 'attempt';
      readonly wait: string;
      readonly relay: string;
      readonly how: 'invoke' | 'attach';
      readonly budgetMs: number;
    })
  /** The relay told what became of the command, so it was admitted. `canary` and `by` (an instance) as the result holds them. */
  | (Key & {
      readonly event: 'answer';
      readonly wait: string;
      readonly outcome: string;
      readonly execution: string;
      readonly canary: string | null;
      readonly by: string | null;
    })
  /** The relay refused for certain. */
  | (Key & { readonly event: 'refused'; readonly wait: string; readonly code: string })
  /** Nothing certain came: it may have been admitted. */
  | (Key & { readonly event: 'broken'; readonly wait: string; readonly code: string })
  /** The record as read, during the run or at its end. */
  | (Key & {
      readonly event: 'record';
      readonly scope: string;
      readonly stage: string;
      readonly outcome: string | null;
      readonly execution: string;
      readonly dispatched: boolean;
      readonly bound: string | null;
      readonly late: number;
      /** By the clock of Redis, epoch milliseconds. */
      readonly admittedAt?: number;
    })
  /** How many rows of its history are an end of the command (late ones apart). */
  | (Key & { readonly event: 'ends'; readonly rows: number })
  /** The execution ledger of a client: on disk before the handler begins, and after it ended. */
  | (Key & { readonly event: 'run-begin'; readonly instance: string; readonly canary: string | null })
  | (Key & { readonly event: 'run-end'; readonly instance: string })
  | {
      readonly event: 'link';
      readonly user: string;
      readonly client: string;
      readonly instance: string;
      readonly up: boolean;
    }
  /** `user` was shown a canary on one of the faces. */
  | { readonly event: 'seen'; readonly user: string; readonly face: string; readonly canary: string }
  | { readonly event: 'reservation'; readonly scope: string; readonly reserved: number }
  /** A record that was live when it was read, of a reading that began at `since` (as `at`). */
  | (Key & { readonly event: 'live'; readonly since: number })
  /** Live records of a scope and its reservations, counted in the middle of the load while none of its commands came or ended. */
  | { readonly event: 'count'; readonly scope: string; readonly live: number; readonly reserved: number }
  /** Reservations were listed whole: scopes without a row hold nothing. */
  | { readonly event: 'reservations-read'; readonly scopes: number }
  | { readonly event: 'cap'; readonly name: string; readonly value: number; readonly max: number }
  | { readonly event: 'memory'; readonly of: string; readonly bytes: number }
  /** A key without an expiry that no list allows. */
  | { readonly event: 'leftover'; readonly key: string }
  /** A relay after everybody left. */
  | {
      readonly event: 'idle';
      readonly of: string;
      readonly waiters: number;
      readonly unfinished: number;
      readonly sockets: number;
      readonly baseline: number;
    }
  /** `wall`: when, by the clock of the machine, epoch milliseconds. */
  | {
      readonly event: 'fault';
      readonly id: number;
      readonly kind: string;
      readonly target: string;
      readonly wall?: number;
    }
  | { readonly event: 'heal'; readonly id: number }
  /** The fault cannot be done on this machine. */
  | { readonly event: 'skipped'; readonly id: number; readonly kind: string; readonly why: string }
  /** A relay's own word that it lost what it held: `fenced` or `store_lost`. */
  | { readonly event: 'lost'; readonly of: string; readonly cause: string }
  /** A second process of a node, while the first lived or was paused for `afterMs`: it was let in, or not. */
  | {
      readonly event: 'twin';
      readonly of: string;
      readonly first: 'live' | 'paused';
      readonly afterMs: number;
      readonly came: 'in' | 'refused';
    }
  /** A payload of history that is kept apart from its row: as it was sent, missing and said to be, or anything else. */
  | (Key & { readonly event: 'payload'; readonly kind: string; readonly state: 'whole' | 'unavailable' | 'wrong' })
  | { readonly event: 'phase'; readonly phase: 'load' | 'quiet' | 'read' };

/** `at`: nanoseconds of the machine's monotonic clock. One machine runs a whole run, so stamps of its processes compare. */
export type Stamp = { readonly proc: string; readonly boot: string; readonly seq: number; readonly at: number };
export type Logged = Stamp & FaultEvent;

/** A canary names its user and its command, so that whoever sees it knows whose it is. */
export function canaryOf({ user, command }: Pick<Key, 'user' | 'command'>): string {
  return `canary/${user}/${command}`;
}

/** `bytes` characters that only this command's payload is made of. */
export function fillerOf(key: Pick<Key, 'user' | 'command'>, bytes: number): string {
  const canary = `${canaryOf(key)} `;
  return canary.repeat(Math.ceil(bytes / canary.length)).slice(0, bytes);
}

export function keyText({ user, client, command }: Key): string {
  return `${user}/${client}/${command}`;
}
