/** Defines the types of the events in the logs of a run. Other files write and read the logs. */

/** The ids that name one command. */
export type Key = { readonly user: string; readonly client: string; readonly command: string };

/** The parts that a relay can have in a call: it owns the user, was called, or has the link of the client. */
export const ROLES = ['owner', 'caller', 'client'] as const;
export type Role = (typeof ROLES)[number];

/** What an owner does, in the middle of which a kill can hit. */
export const WORKS = ['takeover', 'handover', 'snapshot'] as const;
export type Work = (typeof WORKS)[number];

/** The actions that clients have. */
export const ACTIONS = ['work', 'rest'] as const;
export type Action = (typeof ACTIONS)[number];

/** Which calls a pause of a run covers: those that match every member that is given. */
export type Cover = {
  readonly user_id?: string;
  readonly client_id?: string;
  /** A pattern. */
  readonly action?: string;
  readonly all?: true;
};

/**
 * The events that the processes of a run log. `wait` names one wait of one caller. The time of an event is in its
 * stamp.
 */
export type FaultEvent =
  /** A caller is about to send a request. `budgetMs`: how long the command may take from now, in milliseconds. */
  | (Key & {
      readonly event: 'attempt';
      readonly wait: string;
      readonly relay: string;
      readonly how: 'invoke' | 'attach';
      /** Absent: `work`. */
      readonly action?: Action;
      /** The id of a token that is revoked in this run. Absent: the token of an honest caller. */
      readonly token?: string;
      /** The node that owns the user, if the run knows. */
      readonly owner?: string | null;
      readonly budgetMs: number;
    })
  /**
   * A relay answered with the state of the command, so the command was admitted. `canary` and `by` (an instance) are
   * taken from the result.
   */
  | (Key & {
      readonly event: 'answer';
      readonly wait: string;
      readonly outcome: string;
      readonly execution: string;
      readonly canary: string | null;
      readonly by: string | null;
      /** Why it expired or failed. Absent: nothing says so. */
      readonly code?: string;
    })
  /** A relay refused the request, so this request did not admit the command. */
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
      /** The time of admission by the clock of Redis, in epoch milliseconds. */
      readonly admittedAt?: number;
    })
  /** The number of rows in a command's history that are an end. Late ends are not counted. */
  | (Key & { readonly event: 'ends'; readonly rows: number })
  /**
   * A client received the command over a socket that it had not given up, and handles what it received.
   */
  | (Key & { readonly event: 'arrival'; readonly instance: string })
  /**
   * A client runs the command. `leftMs`: the time that the handler is told it has left. `run-begin` is on disk before the handler begins, and `run-end` after the handler has
   * ended.
   */
  | (Key & {
      readonly event: 'run-begin';
      readonly instance: string;
      readonly canary: string | null;
      readonly leftMs: number;
    })
  | (Key & { readonly event: 'run-end'; readonly instance: string })
  | {
      readonly event: 'link';
      readonly user: string;
      readonly client: string;
      readonly instance: string;
      readonly up: boolean;
    }
  /** An answer named this reason why something may be missing in it. Each reason is logged once for each list. */
  | { readonly event: 'gap'; readonly list: string; readonly reason: string }
  /** The relay showed `user` this canary. `on`: the interface on which it was shown. */
  | { readonly event: 'seen'; readonly user: string; readonly on: string; readonly canary: string }
  | { readonly event: 'reservation'; readonly scope: string; readonly reserved: number }
  /**
   * A record that was live when it was read. `since` is the time at which the reading began, by the same clock as `at`
   * of the stamp.
   */
  | (Key & { readonly event: 'live'; readonly since: number })
  /**
   * The live records of a scope and its reservations, counted under load. No command of the scope was admitted or ended
   * between the two counts.
   */
  | { readonly event: 'count'; readonly scope: string; readonly live: number; readonly reserved: number }
  /** The reader listed the reservations of all scopes, so a scope without a row holds none. */
  | { readonly event: 'reservations-read'; readonly scopes: number }
  | { readonly event: 'cap'; readonly name: string; readonly value: number; readonly max: number }
  /**
   * The memory of a relay in bytes: what was resident before a garbage collection, and what its heap and its buffers held
   * after it. `keepsRecords`: the relay keeps the records of commands itself, not in Redis.
   */
  | {
      readonly event: 'memory';
      readonly of: string;
      readonly resident: number;
      readonly live: number;
      readonly keepsRecords: boolean;
    }
  /**
   * What the event loop of a relay did since the event before, if that was much. `turnMs`: the CPU time of the most
   * expensive turn. `stalledMs`: the longest time without a turn, which is longer if the machine did not run the relay.
   */
  | { readonly event: 'turns'; readonly of: string; readonly turnMs: number; readonly stalledMs: number }
  /** A key without an expiry that should have one. */
  | { readonly event: 'leftover'; readonly key: string }
  /** The counters in Redis were compared with what is there. `keys`: how many keys were read. */
  | { readonly event: 'audited'; readonly keys: number }
  /** A counter in Redis that differed from what was there, as a sentence. */
  | { readonly event: 'miscount'; readonly what: string }
  /** A relay listed what it holds after all clients and callers have left. */
  | {
      readonly event: 'idle';
      readonly of: string;
      readonly waiters: number;
      readonly unfinished: number;
      readonly sockets: number;
      readonly baseline: number;
    }
  /**
   * How a process of a relay that had become ready ended, read at the end of the run. `by`: `itself`, or the fault run,
   * which killed it or asked it to stop; `nobody`: it still runs.
   */
  | {
      readonly event: 'process';
      readonly of: string;
      readonly by: 'itself' | 'kill' | 'stop' | 'nobody';
      readonly code: number | null;
      readonly signal: string | null;
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
  /**
   * What a kill has hit. `role`: the part of the relay in a call; null: no call was in progress. `work`: what an owner
   * did not finish; null: nothing. `step`: of a handover, the note that was sent last.
   */
  | {
      readonly event: 'aimed';
      readonly id: number;
      readonly role: Role | null;
      readonly work: Work | null;
      readonly step: string | null;
    }
  /** The relays received hellos of connections that their clients had given up for later ones. */
  | { readonly event: 'late-hellos'; readonly count: number }
  /** The fault was skipped, because it is not possible on this machine. */
  | { readonly event: 'skipped'; readonly id: number; readonly kind: string; readonly why: string }
  /**
   * A loss of power was carried out. `killedAt`, `keptUntil`: times like that of the stamp; the records until
   * `keptUntil` had been synced. `withinMs`: how old a lost record may be; null: any age.
   */
  | {
      readonly event: 'power';
      readonly of: string;
      readonly killedAt: number;
      readonly keptUntil: number;
      readonly withinMs: number | null;
    }
  /** A relay was started on a read-only data directory. `why`: why it did not start; null if it did. */
  | { readonly event: 'shut'; readonly of: string; readonly why: string | null }
  /** A relay reported that it lost data: `fenced` or `store_lost`. */
  | { readonly event: 'lost'; readonly of: string; readonly cause: string }
  /** A relay that owns partitions reported that its lease had ended, or that another relay owns one of them. */
  | { readonly event: 'fenced'; readonly of: string; readonly what: 'lease' | 'partition' }
  /**
   * A second process of a node was started while the first was alive, or was paused for `afterMs`. `came`: whether the
   * relays admitted the second process.
   */
  | {
      readonly event: 'twin';
      readonly of: string;
      readonly first: 'live' | 'paused';
      readonly afterMs: number;
      readonly came: 'in' | 'refused';
    }
  /**
   * A large payload was read from history. `whole`: as it was sent. `unavailable`: missing, and reported as missing.
   * `wrong`: anything else.
   */
  | (Key & { readonly event: 'payload'; readonly kind: string; readonly state: 'whole' | 'unavailable' | 'wrong' })
  /** A relay is about to hand these commands to the sockets of clients. */
  | { readonly event: 'written'; readonly of: string; readonly commands: readonly string[] }
  /** A relay has handed the answer of a request that began this pause to the socket. */
  | { readonly event: 'pause-written'; readonly of: string; readonly pauseId: string }
  /** A person is about to ask a relay for a pause. `name`: the only pause of this name. */
  | { readonly event: 'pause-asked'; readonly name: string; readonly relay: string; readonly cover: Cover }
  /** The person has the answer. */
  | {
      readonly event: 'pause-answered';
      readonly name: string;
      readonly pauseId: string;
      readonly partial: boolean;
      readonly silent: readonly string[];
    }
  /** A person is about to ask for the end of a pause, or of one whose answer did not arrive. */
  | { readonly event: 'resume-asked'; readonly name: string }
  /** The pause has ended. */
  | { readonly event: 'resumed'; readonly name: string }
  /** An administrator has the answer of the revocation of a token. `nodes`: those that it names. */
  | {
      readonly event: 'revoked';
      readonly token: string;
      readonly nodes: readonly string[];
      readonly silent: readonly string[];
    }
  | { readonly event: 'phase'; readonly phase: 'load' | 'quiet' | 'read' };

/**
 * The time and the process of a logged event. `at`: nanoseconds of the monotonic clock. All processes of a run share a
 * machine, so their stamps can be compared.
 */
type Stamp = { readonly proc: string; readonly boot: string; readonly seq: number; readonly at: number };
export type Logged = Stamp & FaultEvent;

/** Returns a text that names a user and a command. A payload that contains the text shows to whom it belongs. */
export function canaryOf({ user, command }: Pick<Key, 'user' | 'command'>): string {
  return `canary/${user}/${command}`;
}

/** Returns a text of `bytes` characters that occurs in no other command's payload. */
export function fillerOf(key: Pick<Key, 'user' | 'command'>, bytes: number): string {
  const canary = `${canaryOf(key)} `;
  return canary.repeat(Math.ceil(bytes / canary.length)).slice(0, bytes);
}

export function keyText({ user, client, command }: Key): string {
  return `${user}/${client}/${command}`;
}
