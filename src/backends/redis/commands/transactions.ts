/**
 * Runs the rules of admission, dispatch and the first end as transactions, and sends those of a tick together. An act
 * that no transaction does, or that meets something else in Redis than this process knows, resolves to null: the act of
 * the same name follows.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Command } from '../../../core/commands/command.ts';
import { CommandRules } from '../../../core/commands/rules.ts';
import {
  endMessageId,
  type AdmitRequest,
  type AdmitResult,
  type DispatchResult,
  type End,
} from '../../../core/commands/stores.ts';
import { clientStream } from '../../../core/history/message.ts';
import type { CommandKey } from '../../../core/ids.ts';
import type { Clock } from '../../../core/ports.ts';
import type { ShareBounds } from '../../../core/shares/shares.ts';
import { revisionOf } from '../connections-rows.ts';
import { boundsOfPartition } from '../shares.ts';
import type { Store } from '../store.ts';
import { listOf, unavailable, type Reply } from '../types.ts';
import { heldCommand, type HeldCommands } from './held.ts';
import type { Attempt } from './known.ts';
import { fieldOf } from './predict.ts';
import { Tick, type TickSettings } from './tick.ts';
import { KnownCommand, RedisTransaction, Unfit, type Remembered, type TransactionParts } from './transaction.ts';

const BODY = readFileSync(new URL('../program/transaction.lua', import.meta.url), 'utf8');
const PROGRAM = programOf('#!lua');
/** For a Redis without memory: it then runs only acts that free something. */
const PROGRAM_FULL = programOf('#!lua flags=allow-oom');

function programOf(flags: string): { readonly source: string; readonly sha: string } {
  const source = `${flags}\n${BODY}`;
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}

/** The most acts of a call, and the most characters that they bring. */
const MOST_ACTS = 32;
const MOST_CHARS = 256 * 1024;
/** The most characters of rows in a call: they fit into one block of a stream. */
const MOST_ROWS_CHARS = 24 * 1024;
/** How long what a process knows of Redis is believed, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** How often the time is corrected and the call computed again. */
const TRIES = 3;

export type TransactionsParts = {
  readonly store: Store;
  readonly held: HeldCommands;
  readonly sha256: (text: string) => string;
  /** The clock of the store. */
  readonly clock: Pick<Clock, 'now'>;
  readonly windowMs: number;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly bounds: ShareBounds | undefined;
  /** Whether each act is decided on its own. */
  readonly careful: boolean;
};

/** A new command and its wait, as texts. */
export type NewCommand = { readonly request: AdmitRequest; readonly text: string; readonly wait: string };
export type Admitted = { readonly answer: AdmitResult; readonly at: number };

export interface Transactions {
  admit(command: NewCommand): Promise<Admitted | null> | null;
  dispatch(key: CommandKey, attempt: Attempt): Promise<DispatchResult | null> | null;
  finish(key: CommandKey, end: End): Promise<Command | null> | null;
}

/** Why an act did not pass: a reason, and the value that differed or the share without room. */
type Failure = readonly [reason: string, value: Reply];
type Answer = {
  readonly failure: Failure | null;
  readonly at: number;
  readonly place: string;
  readonly count: number | null;
};

type Asked = {
  readonly name: string;
  readonly chars: number;
  readonly rowChars: number;
  readonly grows: boolean;
  readonly run: (tick: Tick, parts: TransactionParts) => RedisTransaction;
  readonly done: (answer: Answer | null) => void;
  readonly failed: (error: unknown) => void;
};

export function createTransactions(parts: TransactionsParts): Transactions {
  const { store, held, clock, windowMs, retentionMs } = parts;
  const bounds = boundsOfPartition(store, parts.bounds);
  const queues = new Map<number, Asked[]>();
  const remembered: Remembered = { opened: new Set(), renewed: new Map(), epochs: new Map(), waiting: new Map() };
  let since = 0;
  let ahead = 0;
  const forget = (): void => {
    for (const one of Object.values(remembered)) one.clear();
  };
  store.onVerdict(forget);
  const settingsOf = (partition: number): TickSettings => ({
    start: store.key(partition, 'meta').slice(0, -'meta'.length),
    retentionMs,
    streamMessages: parts.streamMessages,
    careful: parts.careful,
  });
  const trim = (partition: number, sth: string, aged: boolean): void => {
    const stream = streams.get(sth);
    if (!stream) return;
    const { userId, suffix } = stream;
    const row = ['userId', userId, 'suffix', suffix, 'uh', store.hash(userId), 'sth', sth];
    const limits = ['streamMessages', parts.streamMessages, 'retentionMs', retentionMs, 'aged', aged ? '1' : ''];
    void store.act(partition, 'history-trim', [...row, ...limits]).catch(() => {});
  };
  /** The streams of this process's commands, by hash. */
  const streams = new Map<string, { readonly userId: string; readonly suffix: string }>();

  const send = async (partition: number, asked: readonly Asked[], full: boolean): Promise<void> => {
    const caller = store.callerOf(partition);
    if (!caller || asked.length === 0) return asked.forEach(({ done }) => done(null));
    for (let tries = 0; ; tries++) {
      const tick = new Tick(settingsOf(partition), clock.now() + ahead);
      if (tick.now - since >= REMEMBERED_MS || tick.now < since) {
        forget();
        since = tick.now;
      }
      const shared = { hash: store.hash, windowMs, retentionMs, bounds, remembered, caller };
      const list: { readonly one: Asked; readonly tx: RedisTransaction }[] = [];
      for (const one of asked) {
        try {
          list.push({ one, tx: one.run(tick, shared) });
        } catch (error) {
          // What it has added to the tick cannot be taken back, so the tick is made again without it.
          forget();
          if (error instanceof Unfit) one.done(null);
          else one.failed(error);
          return send(
            partition,
            asked.filter((other) => other !== one),
            full,
          );
        }
      }
      let reply: readonly Reply[];
      try {
        reply = await store.transact(partition, full ? PROGRAM_FULL : PROGRAM, (frame) => tick.words(frame));
      } catch (error) {
        forget();
        if (full || unavailable(error).code !== 'store_full') return asked.forEach(({ failed }) => failed(error));
        // Redis refused the call before it ran anything: what frees memory is sent again, what needs it is refused.
        for (const one of asked) if (one.grows) one.failed(error);
        return send(
          partition,
          asked.filter(({ grows }) => !grows),
          true,
        );
      }
      const [verdict, notes, placed, counts, ...failures] = reply;
      if (verdict === 'CLOCK') {
        ahead = Number(notes) - clock.now();
        if (tries < TRIES) continue;
        return asked.forEach(({ done }) => done(null));
      }
      if (failures.length > 0) forget();
      const why = new Map(failures.map((row) => [Number(listOf(row)[0]), listOf(row).slice(1) as unknown as Failure]));
      const flat = listOf(placed);
      const places = new Map<number, string>();
      for (let i = 0; i < flat.length; i += 2) places.set(Number(flat[i]), String(flat[i + 1]));
      for (const { one, tx } of list)
        one.done({
          failure: why.get(tx.act) ?? null,
          at: tick.now,
          place: places.get(tx.act) ?? '',
          count: tx.counted === null ? null : Number(listOf(counts)[tx.counted]),
        });
      for (const sth of listOf(notes)) trim(partition, String(sth), false);
      for (const sth of tick.renewed) trim(partition, sth, true);
      return;
    }
  };
  const flush = (): void => {
    const all = [...queues];
    queues.clear();
    for (const [partition, asked] of all) for (const part of partsOf(asked)) void send(partition, part, false);
  };
  const ask = (
    key: CommandKey,
    what: Pick<Asked, 'grows' | 'run' | 'rowChars' | 'chars'>,
  ): Promise<Answer | null> | null => {
    const partition = store.partitionOfUser(key.userId);
    const queue = queues.get(partition) ?? [];
    const name = nameOf(key);
    if (queue.some((one) => one.name === name)) return null;
    if (queues.size === 0) setImmediate(flush);
    queues.set(partition, queue);
    const { promise, resolve, reject } = Promise.withResolvers<Answer | null>();
    queue.push({ ...what, name, done: resolve, failed: reject });
    return promise;
  };
  const noteStream = ({ userId, clientId }: CommandKey): void => {
    const suffix = clientStream(clientId);
    const sth = store.hash(userId, suffix);
    if (streams.size > 20_000) streams.clear();
    if (!streams.has(sth)) streams.set(sth, { userId, suffix });
  };

  const admit = (command: NewCommand): Promise<Admitted | null> | null => {
    const { request } = command;
    const { seen, userId, clientId, scopeId, memberLimit, waiter } = request;
    const partition = store.partitionOfUser(userId);
    const caller = store.callerOf(partition);
    if (scopeId !== userId || memberLimit !== null || waiter.callerNodeId !== caller?.nodeId) return null;
    if (seen) {
      const link = [seen.nodeId, seen.epoch, seen.instanceId, revisionOf(store, seen.actions), '', '', ''].join('\0');
      return admitOn(command, link);
    }
    const bound = store.read([['HGET', store.key(partition, 'client', store.hash(userId, clientId)), 'b']]);
    return bound.then(([link]) => (typeof link === 'string' ? admitOn(command, link) : null));
  };
  /** Admits a command for a client whose binding is expected to have this text. */
  const admitOn = (command: NewCommand, link: string, again = false): Promise<Admitted | null> | null => {
    const { request, text, wait } = command;
    const { claim, userId, params } = request;
    const [nodeId = '', epoch = '', instanceId = '', , upTo = '', moved = ''] = link.split('\0');
    const partition = store.partitionOfUser(userId);
    if (upTo !== '' || moved !== '') return null;
    const isNear = nodeId === store.callerOf(partition)?.nodeId;
    if (!isNear && !remembered.epochs.has(nodeId)) {
      void readEpoch(store, { partition, nodeId, into: remembered.epochs });
      return null;
    }
    const client = `${userId}\0${request.clientId}`;
    const binding = { nodeId, instanceId, epoch: Number(epoch) };
    const expected = { binding, link, waiting: claim && !again ? (remembered.waiting.get(client) ?? 0) : 1 };
    const made: { result: AdmitResult | null; tx: RedisTransaction | null } = { result: null, tx: null };
    const answer = ask(request, {
      grows: true,
      chars: text.length + 2 * (params?.length ?? 0),
      rowChars: (request.kept.payload?.length ?? 0) + 512,
      run(tick, shared) {
        const tx = new RedisTransaction(tick, shared, { client: expected, request, text, wait });
        made.tx = tx;
        made.result = new CommandRules(tx).admit(request);
        return tx;
      },
    });
    if (!answer) return null;
    noteStream(request);
    return answer.then((found) => {
      if (!found || !made.result || !made.tx) return null;
      const { failure, at, place, count } = found;
      if (count !== null) remembered.waiting.set(client, count);
      if (failure) {
        const [reason, value] = failure;
        if (reason === 'differs' && Number(value) > 0 && claim && !again) return admitOn(command, link, true);
        const refused = refusalOf(failure, request);
        return refused && { answer: refused, at };
      }
      if (made.result.kind !== 'admitted') return { answer: made.result, at };
      if (isNear) {
        const state = made.tx.state.replace('\x01', place);
        held.put(request, heldCommand({ state, request: text, waits: made.tx.waits, params }));
      }
      return { answer: made.result, at };
    });
  };

  return {
    admit,
    dispatch(key, { attempt, ...binding }) {
      const before = held.get(key);
      if (!before || before.params === null || fieldOf(before.texts.state, 'stage') !== 'queued') return null;
      const known = new KnownCommand(before);
      const client = { binding, link: `${binding.nodeId}\0${binding.epoch}\0`, waiting: 1 };
      const made: { result: DispatchResult; tx: RedisTransaction | null } = { result: { kind: 'skip' }, tx: null };
      const answer = ask(key, {
        ...{ grows: false, chars: before.state.length, rowChars: 0 },
        run(tick, shared) {
          const tx = new RedisTransaction(tick, shared, { client, known });
          made.tx = tx;
          made.result = new CommandRules(tx).dispatch(key, { binding, attempt });
          return tx;
        },
      });
      if (!answer) return null;
      return answer.then((found) => {
        if (!found || found.failure || !made.tx || made.result.kind !== 'dispatch') return null;
        if (found.count !== null) remembered.waiting.set(`${key.userId}\0${key.clientId}`, found.count);
        held.put(key, heldCommand({ ...before, state: made.tx.state }, { request: before.texts.request }));
        return made.result;
      });
    },
    finish(key, end) {
      const before = held.get(key);
      if (!before || before.waits === null) return null;
      const known = new KnownCommand(before);
      const { command, progress } = known;
      const runs = command.stage === 'dispatched' || command.stage === 'acknowledged';
      const fits = runs && command.boundInstanceId === end.instanceId && command.sightings.length === 0;
      if (!fits || (progress?.rows ?? 0) > 8 || command.scopeId !== key.userId) return null;
      noteStream(key);
      const made: { command: Command | null } = { command: null };
      const answer = ask(key, {
        ...{ grows: false, chars: 2 * before.state.length + 2 * (end.payload?.length ?? 0) },
        rowChars: (end.kept.payload?.length ?? 0) + endMessageId(key.commandId, end).length + 512,
        run(tick, shared) {
          const tx = new RedisTransaction(tick, shared, { known });
          const result = new CommandRules(tx).finish(key, end);
          made.command = result.kind === 'finished' ? result.command : null;
          return tx;
        },
      });
      return answer && answer.then((found) => (found && !found.failure ? made.command : null));
    },
  };
}

/** Returns the refusal that a guard in Redis found; null: the act of that name decides. */
function refusalOf([reason, value]: Failure, { chosenId }: AdmitRequest): AdmitResult | null {
  if (reason === 'capacity_exceeded' || reason === 'queue_full') return { kind: 'refused', code: reason };
  if (reason !== 'share_exceeded' && reason !== 'store_full') return null;
  if (value === 'q') return { kind: 'refused', code: reason, share: 'queued_bytes' };
  return value === 'm' && chosenId ? { kind: 'refused', code: reason } : null;
}

async function readEpoch(
  store: Store,
  { partition, nodeId, into }: { partition: number; nodeId: string; into: Map<string, string> },
): Promise<void> {
  const [found] = await store.read([['HGET', store.key(partition, 'node', nodeId), 'epoch']]).catch(() => []);
  if (typeof found === 'string') into.set(nodeId, found);
}

function* partsOf(asked: readonly Asked[]): Generator<readonly Asked[]> {
  let part: Asked[] = [];
  let [chars, rowChars] = [0, 0];
  for (const one of asked) {
    const isFull = chars + one.chars > MOST_CHARS || rowChars + one.rowChars > MOST_ROWS_CHARS;
    if (part.length > 0 && (part.length === MOST_ACTS || isFull)) {
      yield part;
      part = [];
      [chars, rowChars] = [0, 0];
    }
    part.push(one);
    chars += one.chars;
    rowChars += one.rowChars;
  }
  if (part.length > 0) yield part;
}

function nameOf({ userId, clientId, commandId }: CommandKey): string {
  return `${userId}\0${clientId}\0${commandId}`;
}
