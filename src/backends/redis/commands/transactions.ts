/**
 * Runs acts on commands as transactions of core's rules.
 *
 * An act is first decided with what this process expects of Redis, or has read, and is sent together with other acts.
 * If Redis finds that this differs, the data is read and the act is decided again.
 */
import { CommandRules } from '../../../core/commands/rules.ts';
import { LINK_STREAM } from '../../../core/history/message.ts';
import { clientKeyText, commandKeyText, type CommandKey } from '../../../core/ids.ts';
import { DEDUP_TTL_MS } from '../../../core/limits.ts';
import type { MaybePromise } from '../../../core/maybe-promise.ts';
import type { Metrics } from '../../../core/metrics.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import type { ShareBounds } from '../../../core/shares/share-bounds.ts';
import { transactionPrograms } from '../program/program.ts';
import { boundsOfPartition } from '../shares.ts';
import type { Store } from '../store.ts';
import { listOf, type ReadCommand, type Reply } from '../replies.ts';
import { unavailable } from '../client.ts';
import { placesOf, type Entry } from './record.ts';
import { TransactionCall, type CallSettings } from './transaction-call.ts';
import {
  Opening,
  readName,
  Unread,
  type TransactionInput,
  type Remembered,
  type TransactionDeps,
} from './transaction-writes.ts';
import { RedisTransaction } from './transaction.ts';

/** The most acts of one call, and the most characters that they add to it. */
const MOST_ACTS = 32;
const MOST_CHARS = 256 * 1024;
/** The most characters of history rows in one call. They must fit into one block of a stream. */
const MOST_ROWS_CHARS = 24 * 1024;
/** How long this process trusts what it remembers of Redis, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** How many times the time of the relay is corrected and a call computed again. */
const CLOCK_TRIES = 3;
/** The most consecutive calls that drop rows beyond a total. */
const MOST_DROPS = 64;
/** How many times an act is decided because Redis had other data than expected. */
const TRIES = 16;

type TransactionsOptions = {
  readonly store: Store;
  readonly sha256: (text: string) => string;
  /** The clock of the store. */
  readonly clock: Pick<Clock, 'now'>;
  readonly windowMs: number;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly streamsPerUser: number;
  /** The most rows of one user's link history. */
  readonly linkMessages: number;
  readonly bounds: ShareBounds | undefined;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Whether Redis decides the acts of a call one by one in any case. */
  readonly careful: boolean;
};

export type Rules = CommandRules<Entry, ReturnType<RedisTransaction['client']>>;

/** An act on a command. `T`: the type of its answer. */
export type Act<T> = {
  /** The command. Acts on the same command run one after another, in the order in which they were requested. */
  readonly key: CommandKey;
  readonly given: Omit<TransactionInput, 'reads' | 'known' | 'without' | 'isDead'>;
  /**
   * Returns the data that decides the act: what this process expects, or has read for it. Null: everything is read.
   * `failed`: why the last attempt did not pass; null for the first attempt.
   */
  readonly known: (failed: Failure | null) => MaybePromise<TransactionInput['known']>;
  /** Returns additional reads that are needed together with the known data. */
  readonly besides?: (known: NonNullable<TransactionInput['known']>) => readonly ReadCommand[];
  /** Returns the first reads, for an attempt without known data. */
  readonly first: (key: Store['key'], partition: number) => readonly ReadCommand[];
  readonly run: (rules: Rules, tx: RedisTransaction) => T;
  /** Whether a Redis without memory must refuse the act. */
  readonly grows: boolean;
  /**
   * Whether the act moves commands of the client's queue. If so, no other act on this client is sent in the same call.
   */
  readonly moves?: boolean;
  /**
   * Estimates, per command of the act: the characters that it adds to a call (`chars`), and how many of them are rows
   * of history (`rowChars`).
   */
  readonly chars: number;
  readonly rowChars?: number;
  /** Returns the answer if a guard failed. Null: the act is decided again. */
  readonly refused?: (failure: Failure) => T | null;
};

/** Why an act did not pass: the reason, and the value that differed or the share that has no room. */
export type Failure = { readonly reason: string; readonly value: Reply };

/**
 * The answer of an act. `entries`: its commands after the act. `at`: the time of the act. `place`: the place of a new
 * command in its queue, or of a message that was appended once; '' if there is neither. `trimmed`: resolves once rows
 * beyond the limits of history are removed; null if there are none.
 */
export type ActResult<T> = {
  readonly answer: T;
  readonly entries: readonly Entry[];
  readonly at: number;
  readonly place: string;
  readonly trimmed: Promise<unknown> | null;
};

export interface Transactions {
  readonly remembered: Remembered;
  /**
   * Runs an act. Throws `store_unavailable` or `store_full` if the act did not run, and also if it is unknown whether
   * it ran.
   */
  run<T>(act: Act<T>): Promise<ActResult<T>>;
}

type Outcome = {
  readonly failure: Failure | null;
  readonly at: number;
  readonly place: string;
  readonly count: number | null;
  readonly trimmed: Promise<unknown> | null;
};
type PendingAct = {
  readonly client: string;
  readonly moves: boolean;
  readonly chars: number;
  readonly rowChars: number;
  readonly grows: boolean;
  readonly run: (call: TransactionCall, deps: TransactionDeps) => RedisTransaction;
  /** Called with the outcome of the act. `Unread`: more data must be read first. */
  readonly done: (outcome: Outcome | Unread) => void;
  readonly failed: (error: unknown) => void;
};
/** An act, with the transaction that added it to a call. */
type SentAct = { readonly one: PendingAct; readonly tx: RedisTransaction };
type Sending = {
  readonly partition: number;
  readonly call: TransactionCall;
  readonly acts: readonly SentAct[];
  readonly way: Way;
  /** How many times these acts were sent before. */
  readonly tries: number;
};
type Way = keyof ReturnType<typeof transactionPrograms>;

function opensStreams(way: Way): boolean {
  return way === 'opening' || way === 'fullOpening';
}

export function createTransactions(deps: TransactionsOptions): Transactions {
  const { store, clock, windowMs, retentionMs, sha256 } = deps;
  const bounds = boundsOfPartition(store, deps.bounds);
  const programs = transactionPrograms();
  const queues = new Map<number, PendingAct[]>();
  const remembered: Remembered = {
    opened: new Set(),
    renewed: new Map(),
    epochs: new Map(),
    searched: new Map(),
    waiting: new Map(),
    seen: new Map(),
  };
  /**
   * For each user for whom unanswered calls may open streams: the number of such calls, and the acts that wait for
   * them.
   */
  const opening = new Map<string, { calls: number; readonly waiting: PendingAct[] }>();
  let since = 0;
  let ahead = 0;
  /** The users whose losses were logged in about the last minute, so that the log does not repeat them. */
  const logged = new Set<string>();
  const forget = (): void => {
    for (const one of Object.values(remembered)) one.clear();
    logged.clear();
  };
  /**
   * Forgets the renewals of a call, because they may not have been written, and the epochs that it may have expected
   * wrongly.
   */
  const unlearn = ({ renewed }: TransactionCall): void => {
    for (const sth of renewed) remembered.renewed.delete(sth);
    remembered.epochs.clear();
  };
  store.onVerdict(forget);
  const settingsOf = (partition: number, opens: boolean): CallSettings => ({
    key: (kind, part, more) => store.key(partition, kind, part, more),
    retentionMs,
    streamMessages: deps.streamMessages,
    streamsPerUser: deps.streamsPerUser,
    careful: deps.careful,
    opens,
  });
  const newCall = (partition: number, way: Way = 'usual'): TransactionCall => {
    const call = new TransactionCall(settingsOf(partition, opensStreams(way)), clock.now() + ahead);
    if (call.now - since >= REMEMBERED_MS || call.now < since) {
      forget();
      ahead = 0;
      since = call.now;
    }
    return call;
  };
  const shared = (partition: number, isOpening: TransactionDeps['isOpening']): TransactionDeps => {
    const caller = store.callerOf(partition) ?? { nodeId: '', epoch: 0 };
    return { hash: store.hash, sha256, windowMs, retentionMs, bounds, remembered, isOpening, caller };
  };
  /**
   * Removes the rows beyond the limits of the streams that a call has written, or beyond the limits of shares. May be
   * repeated.
   */
  const trim = (partition: number, call: TransactionCall, notes: readonly string[]): Promise<unknown> | null => {
    if (notes.length === 0 && call.renewed.length === 0) return null;
    const streams = new Set([...notes, ...call.renewed]);
    const acts: Promise<unknown>[] = [];
    for (const sth of streams) {
      const stream = call.streamOf(sth);
      if (!stream) continue;
      const row = ['userId', stream.userId, 'suffix', stream.suffix, 'uh', stream.uh, 'sth', sth];
      const streamMessages = stream.suffix === LINK_STREAM ? deps.linkMessages : deps.streamMessages;
      const limits = ['streamMessages', streamMessages, 'retentionMs', retentionMs];
      const aged = ['aged', call.renewed.includes(sth) ? '1' : ''];
      acts.push(store.act(partition, 'history-trim', [...row, ...limits, ...aged]));
    }
    if (notes.includes('h')) acts.push(store.act(partition, 'history-evict', [...(bounds['h'] ?? [])]));
    if (notes.includes('e')) acts.push(dropBeyond(partition, 'e'));
    if (notes.includes('d')) acts.push(dropBeyond(partition, 'd'));
    return acts.length === 0 ? null : Promise.allSettled(acts);
  };
  /** Reduces records (`e`) or drops marks of messages (`d`) until the total of the share is within its limit. */
  const dropBeyond = async (partition: number, letter: keyof typeof DROPS): Promise<void> => {
    const { act, life, words, counters, says } = DROPS[letter];
    // If rows remain after MOST_DROPS calls, the next act beyond the total continues.
    for (let more: Reply = 1, calls = 0; more === 1 && calls < MOST_DROPS; calls++) {
      const args = [...(bounds[letter] ?? []), life(windowMs), ...words];
      const [again, ...answer] = listOf(await store.act(partition, act, args));
      more = again ?? null;
      for (const [i, counter] of counters.entries())
        for (let times = Number(answer[i]); times > 0; times--) deps.metrics.count(...counter);
      for (const userId of answer.slice(counters.length).map(String)) {
        if (!logged.has(letter + userId)) deps.log.warn({ userId }, says);
        logged.add(letter + userId);
      }
    }
  };

  /**
   * Builds a call. Leaves out two kinds of acts: those that need data that was not read, and those that must wait for
   * an earlier call (see `holdBack`).
   */
  const decide = (partition: number, asked: readonly PendingAct[], way: Way) => {
    const of = shared(partition, (uh) => way === 'usual' && opening.has(uh));
    for (let left = asked; ;) {
      const call = newCall(partition, way);
      const acts: SentAct[] = [];
      const out = new Set<PendingAct>();
      for (const one of left)
        try {
          acts.push({ one, tx: one.run(call, of) });
        } catch (error) {
          if (error instanceof Opening) {
            opening.get(error.uh)?.waiting.push(one);
            out.add(one);
            continue;
          }
          // An act has failed before in this loop. This error may be caused by what that act has added to the call.
          if (out.size > 0) break;
          out.add(one);
          if (error instanceof Unread) one.done(error);
          else one.failed(error);
          break;
        }
      if (out.size === 0) return { call, acts };
      // What the failed acts have added to the call cannot be removed, so the call is built again without them.
      unlearn(call);
      left = left.filter((one) => !out.has(one));
    }
  };
  /**
   * Makes later acts of some users wait until this call is answered: the users whose streams the call may have to open.
   * Otherwise a later row could overtake rows of this call. Returns a function that sends the waiting acts.
   */
  const holdBack = (partition: number, call: TransactionCall): (() => void) => {
    const users = new Set(call.renewed.map((sth) => call.streamOf(sth)?.uh ?? ''));
    for (const uh of users) {
      const held = opening.get(uh) ?? { calls: 0, waiting: [] };
      held.calls++;
      opening.set(uh, held);
    }
    return () => {
      for (const uh of users) {
        const held = opening.get(uh);
        if (!held || --held.calls > 0) continue;
        opening.delete(uh);
        ask(partition, held.waiting, 'first');
      }
    };
  };
  const send = async (partition: number, given: readonly PendingAct[], way: Way): Promise<void> => {
    let asked = given;
    for (let tries = 0; asked.length > 0; tries++) {
      const { call, acts } = decide(partition, asked, way);
      asked = acts.map(({ one }) => one);
      if (asked.length === 0) return;
      const release = holdBack(partition, call);
      try {
        if (await sendOnce({ partition, call, acts, way, tries })) return;
      } finally {
        release();
      }
    }
  };
  /** Sends a call, and answers its acts. Returns false if the call must be sent again with the time of Redis. */
  const sendOnce = async ({ partition, call, acts, way, tries }: Sending): Promise<boolean> => {
    const asked = acts.map(({ one }) => one);
    let reply: readonly Reply[];
    try {
      reply = await store.transact(partition, programs[way], (frame) => call.words(frame));
    } catch (error) {
      forget();
      if (way.startsWith('full') || unavailable(error).code !== 'store_full') {
        for (const { failed } of asked) failed(error);
        return true;
      }
      // Redis refused the call before it ran any part of it. Acts that need memory fail; acts that free memory are sent
      // again.
      for (const one of asked) if (one.grows) one.failed(error);
      const frees = asked.filter(({ grows }) => !grows);
      await send(partition, frees, 'full');
      return true;
    }
    const [verdict, notes, placed, counts, ...failures] = reply;
    if (verdict === 'CLOCK') {
      ahead = Number(notes) - clock.now();
      unlearn(call);
      if (tries < CLOCK_TRIES) return false;
      for (const { failed } of asked) failed(new Error('The clocks of the relay and of Redis differ.'));
      return true;
    }
    if (failures.length > 0) unlearn(call);
    // If no act passed, Redis has registered nothing.
    if (failures.length < acts.length) {
      for (const key of call.opened) remembered.opened.add(key);
      for (const [scope, at] of call.searched) remembered.searched.set(scope, at);
    }
    const trimmed = trim(partition, call, listOf(notes).map(String));
    const why = new Map(failures.map((row) => failureIn(listOf(row))));
    const places = pairsIn(listOf(placed));
    const closed: SentAct[] = [];
    for (const act of acts) {
      const { one, tx } = act;
      const failure = why.get(tx.act) ?? null;
      if (failure?.reason === 'closed' && way !== 'opening') closed.push(act);
      else
        one.done({
          failure,
          at: call.now,
          place: places.get(tx.act) ?? '',
          trimmed,
          count: tx.counted === null ? null : Number(listOf(counts)[tx.counted]),
        });
    }
    for (const part of openings(closed)) void send(partition, part, way === 'full' ? 'fullOpening' : 'opening');
    return true;
  };
  const flush = (): void => {
    const all = [...queues];
    queues.clear();
    for (const [partition, asked] of all) for (const part of partsOf(asked)) void send(partition, part, 'usual');
  };
  const ask = (partition: number, asked: readonly PendingAct[], at: 'first' | 'last' = 'last'): void => {
    if (asked.length === 0) return;
    const queue = queues.get(partition) ?? [];
    if (queues.size === 0) setImmediate(flush);
    queues.set(partition, at === 'first' ? [...asked, ...queue] : queue);
    if (at === 'last') queue.push(...asked);
  };

  /** Decides an act with the known or read data, and sends it. */
  const attempt = <T>(act: Act<T>, given: TransactionInput): Promise<ActResult<T> | Failure | Unread> => {
    const made: { tx: RedisTransaction | null; answer: T | null } = { tx: null, answer: null };
    const client = clientKeyText(act.key);
    const times = Math.max(1, given.known?.queue?.commands.length ?? given.size ?? 1);
    const { promise, resolve, reject } = Promise.withResolvers<ActResult<T> | Failure | Unread>();
    ask(store.partitionOfUser(act.key.userId), [
      {
        client,
        moves: act.moves ?? false,
        grows: act.grows,
        chars: times * act.chars,
        rowChars: times * (act.rowChars ?? 0),
        run(call, of) {
          const tx = new RedisTransaction(call, of, given);
          made.answer = act.run(new CommandRules(tx), tx);
          tx.close();
          return (made.tx = tx);
        },
        done(outcome) {
          if (outcome instanceof Unread) return resolve(outcome);
          if (outcome.count !== null) remembered.waiting.set(client, outcome.count);
          const { failure, at, place, trimmed } = outcome;
          resolve(failure ?? { answer: made.answer as T, entries: made.tx?.entries ?? [], at, place, trimmed });
        },
        failed: (error) => reject(unavailable(error)),
      },
    ]);
    return promise;
  };

  /** Returns the earlier reads together with further ones. */
  const readMore = async (
    reads: TransactionInput['reads'],
    wanted: readonly ReadCommand[],
  ): Promise<TransactionInput['reads']> => {
    const replies = await store.read(wanted);
    return new Map([...reads, ...wanted.map((command, i) => [readName(command), replies[i] ?? null] as const)]);
  };
  /** Reads all the data that an act needs. Returns the answer of the act if it changes nothing. */
  const readAll = async <T>(
    act: Act<T>,
    of: Pick<TransactionInput, 'without' | 'isDead'>,
  ): Promise<TransactionInput | ActResult<T>> => {
    const partition = store.partitionOfUser(act.key.userId);
    let reads = NO_READS;
    for (let wanted = act.first(store.key, partition); ;) {
      reads = await readMore(reads, wanted);
      const given = { ...act.given, known: null, reads, ...of };
      const call = newCall(partition);
      try {
        // This call is never sent, so the renewals that it registers must not be remembered.
        const nothing = { ...remembered, renewed: new Map<string, number>() };
        const tx = new RedisTransaction(call, { ...shared(partition, () => false), remembered: nothing }, given);
        const answer = act.run(new CommandRules(tx), tx);
        tx.close();
        if (tx.changes > 0) return { ...given, size: tx.entries.length };
        return { answer, entries: tx.entries, at: call.now, place: '', trimmed: null };
      } catch (error) {
        if (!(error instanceof Unread)) throw error;
        wanted = error.commands;
      }
    }
  };

  const run = async <T>(act: Act<T>): Promise<ActResult<T>> => {
    let without = '';
    let last: Failure | null = null;
    const expected = act.known(null);
    // An act that needs no reads is requested in the same tick.
    let known = expected instanceof Promise ? await expected : expected;
    let reads = known && act.besides ? await readMore(NO_READS, act.besides(known)) : NO_READS;
    let isDead: boolean | null = null;
    for (let tries = 0; tries < TRIES; tries++) {
      const of: Pick<TransactionInput, 'without' | 'isDead'> = { without, isDead };
      const given: TransactionInput | ActResult<T> = known
        ? { ...act.given, known, reads, ...of }
        : await readAll(act, of);
      if ('answer' in given) return given;
      const found = await attempt(act, given);
      if ('answer' in found) return found;
      if (found instanceof Unread) {
        // The known data stays, and only the missing data is read.
        if (found.commands.length === 0) known = null;
        else if (known) reads = await readMore(reads, found.commands);
        continue;
      }
      last = found;
      if (found.reason === 'dead' || found.reason === 'alive') isDead = found.reason === 'dead';
      const refused = act.refused?.(found);
      if (refused) return { answer: refused, entries: [], at: 0, place: '', trimmed: null };
      if (isWithoutRoom(found)) without += found.value;
      else {
        // Everything that was read may be outdated, so all of it is read again.
        known = known && (await act.known(found));
        reads = NO_READS;
      }
    }
    throw unavailable(new Error(`An act found something else ${TRIES} times, at last: ${JSON.stringify(last)}.`));
  };
  const inTurn = createTurns();
  return { remembered, run: (act) => inTurn(act.key, () => run(act)) };
}

/** How rows beyond a total are dropped: the act, the lifetime of its rows, and further arguments. */
type Drop = {
  readonly act: string;
  readonly life: (windowMs: number) => number;
  readonly words: readonly string[];
  /**
   * The counters for the numbers in the answer, in order. The users after these numbers are logged with the text
   * `says`.
   */
  readonly counters: readonly Parameters<Metrics['count']>[];
  readonly says: string;
};

const DROPS: Readonly<Record<'e' | 'd', Drop>> = {
  e: {
    act: 'commands-reduce',
    life: (windowMs) => windowMs,
    words: [
      ...placesOf('admittedAt', 'outcome', 'execution', 'terminalAt', 'error', 'forgetAt', 'resultIn', 'unmarked'),
      ...placesOf('userId', 'clientId', 'commandId', 'digest'),
    ],
    counters: [['records_reduced'], ['results_given_up', 'record'], ['ids_forgotten']],
    says: 'no room for marks: ended commands are forgotten early',
  },
  d: {
    act: 'dedup-evict',
    life: () => DEDUP_TTL_MS,
    words: [],
    counters: [['dedup_marks_evicted']],
    says: 'no room for deduplication marks: some are dropped early',
  },
};

/**
 * Returns a function that runs the acts of each command one after another, in the order in which they were requested.
 */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  return <T>(key: CommandKey, act: () => Promise<T>): Promise<T> => {
    const name = commandKeyText(key);
    const running = last.get(name)?.then(act, act) ?? act();
    last.set(name, running);
    const over = (): void => void (last.get(name) === running && last.delete(name));
    running.then(over, over);
    return running;
  };
}

const NO_READS: TransactionInput['reads'] = new Map();

function failureIn(row: readonly Reply[]): [act: number, failure: Failure] {
  return [Number(row[0]), { reason: String(row[1]), value: row[2] ?? null }];
}

/**
 * Whether the reason is that there is no room for the result or the mark of a command. The act is possible without
 * them.
 */
function isWithoutRoom({ reason, value }: Failure): boolean {
  return (reason === 'share_exceeded' || reason === 'store_full') && (value === 'r' || value === 'm');
}

function pairsIn(flat: readonly Reply[]): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) found.set(Number(flat[i]), String(flat[i + 1]));
  return found;
}

/**
 * Divides acts whose streams are not open into calls in which each user has only one stream, because opening a stream
 * may remove another stream of the user.
 */
function* openings(acts: readonly SentAct[]): Generator<readonly PendingAct[]> {
  let part: PendingAct[] = [];
  const streams = new Map<string, string>();
  for (const { one, tx } of acts) {
    const { uh = '', sth = '' } = tx.appendsTo ?? {};
    if ((streams.get(uh) ?? sth) !== sth) {
      yield part;
      part = [];
      streams.clear();
    }
    part.push(one);
    streams.set(uh, sth);
  }
  if (part.length > 0) yield part;
}

/**
 * Divides acts into calls. An act that moves a client's queue is never in a call with other acts on the client: Redis
 * makes all comparisons before all writes, so the act would not see the changes of the others.
 */
function* partsOf(asked: readonly PendingAct[]): Generator<readonly PendingAct[]> {
  let part: PendingAct[] = [];
  let [chars, rowChars] = [0, 0];
  const clients = new Map<string, boolean>();
  for (const one of asked) {
    const isFull = chars + one.chars > MOST_CHARS || rowChars + one.rowChars > MOST_ROWS_CHARS;
    const isApart = one.moves ? clients.has(one.client) : clients.get(one.client) === true;
    if (part.length > 0 && (part.length === MOST_ACTS || isFull || isApart)) {
      yield part;
      part = [];
      [chars, rowChars] = [0, 0];
      clients.clear();
    }
    part.push(one);
    clients.set(one.client, one.moves);
    chars += one.chars;
    rowChars += one.rowChars;
  }
  if (part.length > 0) yield part;
}
