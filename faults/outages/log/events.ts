/** Defines the types of the events in the logs of a run. */

/** The ids that identify one command. */
export type Key = { readonly user: string; readonly client: string; readonly command: string };

/**
 * The roles that a relay may have in a call: it owns the user, it received the call, or it has the link of the client.
 */
export const ROLES = ['owner', 'caller', 'client'] as const;
export type Role = (typeof ROLES)[number];

/** The work of an owner during which a kill can hit it. */
export const WORKS = ['takeover', 'handover', 'snapshot'] as const;
export type Work = (typeof WORKS)[number];

/** The actions that clients have. */
export const ACTIONS = ['work', 'rest'] as const;
export type Action = (typeof ACTIONS)[number];

/** The calls that a pause covers: those that match all given members. */
export type Cover = {
  readonly user_id?: string;
  readonly client_id?: string;
  /** A pattern of action names. */
  readonly action?: string;
  readonly all?: true;
};

/**
 * The events that the processes of a run log. `wait`: the name of one wait of one caller. The time of an event is in
 * its stamp.
 */
export type FaultEvent =
  /** A caller is about to send a request. `budgetMs`: how long the command may take from now on, in milliseconds. */
  | (Key & {
      readonly event: 'attempt';
      readonly wait: string;
      readonly relay: string;
      readonly how: 'invoke' | 'attach';
      /** Default: `work`. */
      readonly action?: Action;
      /** The id of a token that is revoked in this run. Absent: the request has the token of an honest caller. */
      readonly token?: string;
      /** The node that owns the user, if it is known. */
      readonly owner?: string | null;
      readonly budgetMs: number;
    })
  /**
   * A relay answered with the state of the command, so the command was admitted. `canary` and `by` (an instance) come
   * from the result.
   */
  | (Key & {
      readonly event: 'answer';
      readonly wait: string;
      readonly outcome: string;
      readonly execution: string;
      readonly canary: string | null;
      readonly by: string | null;
      /** Why the command expired or failed. Absent: unknown. */
      readonly code?: string;
    })
  /** A relay refused the request, so this request did not admit the command. */
  | (Key & { readonly event: 'refused'; readonly wait: string; readonly code: string })
  /** The request failed without a certain answer, so it may have admitted the command. */
  | (Key & { readonly event: 'broken'; readonly wait: string; readonly code: string })
  /** The record of a command, as it was read during the run or at its end. */
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
  /** The number of rows in a command's history that report its end. Late ends are not counted. */
  | (Key & { readonly event: 'ends'; readonly rows: number })
  /** A client received the command over a socket that it had not given up, so it handles the command. */
  | (Key & { readonly event: 'arrival'; readonly instance: string })
  /**
   * A client runs the command. `leftMs`: the remaining time that the handler is told. `run-begin` is on disk before the
   * handler begins, and `run-end` after it has ended.
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
  /** An answer gave this reason why something may be missing in it. Each reason is logged once for each list. */
  | { readonly event: 'gap'; readonly list: string; readonly reason: string }
  /** The relay showed this canary to `user`. `on`: the interface that showed it. */
  | { readonly event: 'seen'; readonly user: string; readonly on: string; readonly canary: string }
  | { readonly event: 'reservation'; readonly scope: string; readonly reserved: number }
  /**
   * A record that was live when it was read. `since`: when the reading began, by the same clock as `at` in the stamp.
   */
  | (Key & { readonly event: 'live'; readonly since: number })
  /**
   * The numbers of live records and of reservations of a scope, under load. No command of the scope was admitted or
   * ended between the two counts.
   */
  | { readonly event: 'count'; readonly scope: string; readonly live: number; readonly reserved: number }
  /** The reader has listed the reservations of all scopes. A scope without a row has none. */
  | { readonly event: 'reservations-read'; readonly scopes: number }
  | { readonly event: 'cap'; readonly name: string; readonly value: number; readonly max: number }
  /**
   * The memory of a relay in bytes: its resident memory before a garbage collection, and its heap and buffers after it.
   * `keepsRecords`: whether the relay itself keeps the records of commands, instead of Redis.
   */
  | {
      readonly event: 'memory';
      readonly of: string;
      readonly resident: number;
      readonly live: number;
      readonly keepsRecords: boolean;
    }
  /**
   * The activity of a relay's event loop since the previous such event, if it was long. `turnMs`: the CPU time of the
   * most expensive turn. `stalledMs`: the longest time without a turn; it is longer than `turnMs` if the machine did
   * not run the relay.
   */
  | { readonly event: 'turns'; readonly of: string; readonly turnMs: number; readonly stalledMs: number }
  /** A key without an expiry that should have one. */
  | { readonly event: 'leftover'; readonly key: string }
  /** The counters in Redis were compared with the stored data. `keys`: the number of keys that were read. */
  | { readonly event: 'audited'; readonly keys: number }
  /** A counter in Redis that differed from the stored data, as a sentence. */
  | { readonly event: 'miscount'; readonly what: string }
  /** What a relay reported to hold after all clients and callers had disconnected. */
  | {
      readonly event: 'idle';
      readonly of: string;
      readonly waiters: number;
      readonly unfinished: number;
      readonly sockets: number;
      readonly baseline: number;
    }
  /**
   * How a process of a relay that had become ready ended, as read at the end of the run. `by`: who ended it: `itself`;
   * the fault run, which killed it or asked it to stop; `nobody` if it still runs.
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
   * What a kill hit. `role`: the relay's role in a call; null: there was no call in progress. `work`: the work that an
   * owner did not finish; null: none. `step`: for a handover, the note that was sent last.
   */
  | {
      readonly event: 'aimed';
      readonly id: number;
      readonly role: Role | null;
      readonly work: Work | null;
      readonly step: string | null;
    }
  /** The relays received hellos of connections that their clients had given up in favour of later ones. */
  | { readonly event: 'late-hellos'; readonly count: number }
  /** The fault was skipped because this machine cannot carry it out. */
  | { readonly event: 'skipped'; readonly id: number; readonly kind: string; readonly why: string }
  /**
   * A loss of power was carried out. `killedAt`, `keptUntil`: times like that in the stamp; all records until
   * `keptUntil` had been synced. `withinMs`: how old a lost record may be; null: any age.
   */
  | {
      readonly event: 'power';
      readonly of: string;
      readonly killedAt: number;
      readonly keptUntil: number;
      readonly withinMs: number | null;
    }
  /** A relay was started with a read-only data directory. `why`: why it did not start; null if it did. */
  | { readonly event: 'shut'; readonly of: string; readonly why: string | null }
  /** A relay reported that it lost data: `fenced` or `store_lost`. */
  | { readonly event: 'lost'; readonly of: string; readonly cause: string }
  /**
   * A relay that owns partitions reported that its lease had ended, or that another relay owns one of its partitions.
   */
  | { readonly event: 'fenced'; readonly of: string; readonly what: 'lease' | 'partition' }
  /**
   * A second process of a node was started while the first one was running, or had been paused for `afterMs`. `came`:
   * whether the relays accepted the second process.
   */
  | {
      readonly event: 'twin';
      readonly of: string;
      readonly first: 'live' | 'paused';
      readonly afterMs: number;
      readonly came: 'in' | 'refused';
    }
  /**
   * A large payload was read from history. `whole`: it was as it had been sent. `unavailable`: it was reported as
   * missing. `wrong`: anything else.
   */
  | (Key & { readonly event: 'payload'; readonly kind: string; readonly state: 'whole' | 'unavailable' | 'wrong' })
  /** A relay is about to pass these commands to clients' sockets. */
  | { readonly event: 'written'; readonly of: string; readonly commands: readonly string[] }
  /** A relay has passed the answer to the request for this pause to the socket. */
  | { readonly event: 'pause-written'; readonly of: string; readonly pauseId: string }
  /** A person is about to request a pause from a relay. `name`: the unique name of the pause. */
  | { readonly event: 'pause-asked'; readonly name: string; readonly relay: string; readonly cover: Cover }
  /** The person has received the answer. */
  | {
      readonly event: 'pause-answered';
      readonly name: string;
      readonly pauseId: string;
      readonly partial: boolean;
      readonly silent: readonly string[];
    }
  /** A person is about to request the end of a pause, or of a pause whose answer did not arrive. */
  | { readonly event: 'resume-asked'; readonly name: string }
  /** The pause has ended. */
  | { readonly event: 'resumed'; readonly name: string }
  /**
   * An administrator has received the answer to the revocation of a token. `nodes`: the nodes that the answer names.
   */
  | {
      readonly event: 'revoked';
      readonly token: string;
      readonly nodes: readonly string[];
      readonly silent: readonly string[];
    }
  | { readonly event: 'phase'; readonly phase: 'load' | 'quiet' | 'read' };

/**
 * The time and the process of a logged event. `at`: nanoseconds of the monotonic clock. All processes of a run are on
 * one machine, so their stamps can be compared.
 */
type Stamp = { readonly proc: string; readonly boot: string; readonly seq: number; readonly at: number };
export type Logged = Stamp & FaultEvent;

/** Returns a text that contains a user and a command. A payload with this text shows to whom it belongs. */
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
