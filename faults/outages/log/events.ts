/** The events in the logs of a run. Only their form; other files write and read them. */

/** The name of one command. */
export type Key = { readonly user: string; readonly client: string; readonly command: string };

/** The events that the processes of a run log. `wait` names one wait of one caller. The times are in the stamp. */
export type FaultEvent =
  /** A caller is about to send a request. `budgetMs`: how long the command may take from now, in milliseconds. */
  | (Key & {
      readonly event: 'attempt';
      readonly wait: string;
      readonly relay: string;
      readonly how: 'invoke' | 'attach';
      readonly budgetMs: number;
    })
  /**
   * A relay answered with the state of the command, so it was admitted. `canary` and `by` (an instance) are taken from
   * the result.
   */
  | (Key & {
      readonly event: 'answer';
      readonly wait: string;
      readonly outcome: string;
      readonly execution: string;
      readonly canary: string | null;
      readonly by: string | null;
    })
  /** A relay refused, so the command was not admitted by this request. */
  | (Key & { readonly event: 'refused'; readonly wait: string; readonly code: string })
  /** The request failed without a certain answer, so the command may have been admitted. */
  | (Key & { readonly event: 'broken'; readonly wait: string; readonly code: string })
  /** The record of a command as it was read, during the run or at its end. */
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
  /** How many rows of a command's history are an end. Late ends are not counted. */
  | (Key & { readonly event: 'ends'; readonly rows: number })
  /** A client ran the command. It is on disk before the handler begins, and again after it ended. */
  | (Key & { readonly event: 'run-begin'; readonly instance: string; readonly canary: string | null })
  | (Key & { readonly event: 'run-end'; readonly instance: string })
  | {
      readonly event: 'link';
      readonly user: string;
      readonly client: string;
      readonly instance: string;
      readonly up: boolean;
    }
  /** `user` was shown this canary on an interface of the relay. `on`: which one. */
  | { readonly event: 'seen'; readonly user: string; readonly on: string; readonly canary: string }
  | { readonly event: 'reservation'; readonly scope: string; readonly reserved: number }
  /** A record that was live when it was read. The reading began at `since`, by the clock of `at`. */
  | (Key & { readonly event: 'live'; readonly since: number })
  /**
   * The live records of a scope and its reservations, counted under load. None of its commands was admitted or ended in
   * between.
   */
  | { readonly event: 'count'; readonly scope: string; readonly live: number; readonly reserved: number }
  /** All reservations were listed: a scope without a row holds none. */
  | { readonly event: 'reservations-read'; readonly scopes: number }
  | { readonly event: 'cap'; readonly name: string; readonly value: number; readonly max: number }
  | { readonly event: 'memory'; readonly of: string; readonly bytes: number }
  /** A key without an expiry that should have one. */
  | { readonly event: 'leftover'; readonly key: string }
  /** What a relay holds after all clients and callers have left. */
  | {
      readonly event: 'idle';
      readonly of: string;
      readonly waiters: number;
      readonly unfinished: number;
      readonly sockets: number;
      readonly baseline: number;
    }
  /** A fault began. `wall`: the time of the system clock, in epoch milliseconds. */
  | {
      readonly event: 'fault';
      readonly id: number;
      readonly kind: string;
      readonly target: string;
      readonly wall?: number;
    }
  | { readonly event: 'heal'; readonly id: number }
  /** The fault is not possible on this machine. */
  | { readonly event: 'skipped'; readonly id: number; readonly kind: string; readonly why: string }
  /** A relay reported that it lost data: `fenced` or `store_lost`. */
  | { readonly event: 'lost'; readonly of: string; readonly cause: string }
  /**
   * A second process of a node was started while the first was alive, or was paused for `afterMs`. `came`: whether it
   * was let in.
   */
  | {
      readonly event: 'twin';
      readonly of: string;
      readonly first: 'live' | 'paused';
      readonly afterMs: number;
      readonly came: 'in' | 'refused';
    }
  /** A large payload of history: as it was sent, missing and reported as missing, or anything else. */
  | (Key & { readonly event: 'payload'; readonly kind: string; readonly state: 'whole' | 'unavailable' | 'wrong' })
  | { readonly event: 'phase'; readonly phase: 'load' | 'quiet' | 'read' };

/**
 * `at`: nanoseconds of the monotonic clock. All processes of a run share a machine, so their stamps can be compared.
 */
export type Stamp = { readonly proc: string; readonly boot: string; readonly seq: number; readonly at: number };
export type Logged = Stamp & FaultEvent;

/** A text that names its user and its command, so that any reader of it can tell whose it is. */
export function canaryOf({ user, command }: Pick<Key, 'user' | 'command'>): string {
  return `canary/${user}/${command}`;
}

/** A text of `bytes` characters that occurs in no other command's payload. */
export function fillerOf(key: Pick<Key, 'user' | 'command'>, bytes: number): string {
  const canary = `${canaryOf(key)} `;
  return canary.repeat(Math.ceil(bytes / canary.length)).slice(0, bytes);
}

export function keyText({ user, client, command }: Key): string {
  return `${user}/${client}/${command}`;
}
