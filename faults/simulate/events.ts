/**
 * A workload of events: hosts send events of sites and of other streams, in batches that they repeat until they are told
 * that each is retained, readers page through the streams, and viewers receive the events of sites.
 */
import type { SpillStore } from '../../src/core/history/message.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { between, pick } from '../lib/random.ts';
import { ADMIN_TOKEN, openEntry, userToken } from './entry.ts';
import { streamFaults, verdictFaults, viewerFaults, type Sent } from './event-ledger.ts';
import { HttpNetwork, type HttpDoor } from './http-network.ts';
import { ask, get, graphql, memberAt, refusalOf, sending, type HttpAnswer } from './http-requests.ts';
import { SimulatedProcess } from './process.ts';
import { coreOf, faultLog, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { Viewer } from './site-viewer.ts';
import { HEAL_MS, type Workload } from './world.ts';

const USERS = ['user-0', 'user-1', 'user-2', 'user-3'] as const;
const SITE = 'board';
const BOARD = `sites/${SITE}/events`;
const SUFFIXES = [BOARD, BOARD, BOARD, 'log/app'] as const;
const NAMES = ['changed', 'moved', 'gone'] as const;
/** How many viewers a user's site has, at most. */
const VIEWERS = 3;
/** The longest text of a large payload: it goes to the store of large payloads. */
const LARGE_CHARS = 30_000;
/** The rows of a page, so that a stream has several. */
const PAGE = 7;
/** The longest trouble of a request, in milliseconds. */
const TROUBLE_MS = 9_000;
/** How long the marks of events that were sent again are kept, in milliseconds. */
const MARKED_MS = 110_000;
/** How long events may take to viewers once nothing is wrong, in milliseconds. */
const SOON_MS = 5_000;
/** The window of the counters of duplicates, in seconds: longer than any run. */
const WINDOW_SECONDS = 3_600;

const INGEST = `mutation Ingest($messages: [IngestMessageInput!]!) {
  ingestMessages(messages: $messages) {
    ... on IngestResult { items { messageId retained duplicate published error { code } } }
    ... on Refusal { code }
  }
}`;

export class Events implements Workload {
  readonly #relays: Relays;
  readonly #network: HttpNetwork;
  readonly #doors = new Set<HttpDoor>();
  readonly #spill: SpillStore;
  readonly #sent = new Map<string, Sent>();
  readonly #viewers: Viewer[] = [];
  /** The sessions of the users' sites; absent while none is open. */
  readonly #sessions = new Map<string, string>();
  /** The users whose session is being opened. */
  readonly #opening = new Set<string>();
  /** The rows of streams, as they were read last, by their keys. */
  readonly #rows = new Map<string, readonly string[]>();
  #batches = 0;
  #isOver = false;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    this.#network = new HttpNetwork(simulation, () => [...this.#doors].filter(({ process }) => !process.isDead));
    const store = new SimulatedProcess(simulation, 'large payloads');
    this.#spill = createMemorySpill(store.clock, store.crypto, createShares());
  }

  get acknowledged(): number {
    return [...this.#sent.values()].filter(({ toldAt }) => toldAt < Infinity).length;
  }

  get open(): number {
    return this.#all.filter(({ toldAt }) => toldAt === Infinity).length;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    const log = faultLog(this.#relays, relay.process, (fault) => this.#report(fault));
    relay.process.onDeath = () => this.#network.relayDied(relay.process);
    this.#doors.add(await openEntry(relay, log, coreOf(relay, log, this.#spill)));
  }

  onGone(_relay: Relay): void {
    // Requests to it break when its process dies.
  }

  act(): void {
    const userId = pick(this.#random, USERS);
    this.#see(userId);
    const kind = this.#random();
    if (kind < 0.6) this.#send(this.#newBatch(userId));
    else if (kind < 0.7) this.#sendAgain();
    else if (kind < 0.85) this.#read(userId, pick(this.#random, SUFFIXES), null);
    else if (kind < 0.9) this.#leave();
    if (this.#random() < 0.1) this.#trouble();
  }

  finish(): void {
    this.#isOver = true;
    this.#network.heal();
  }

  isDone(): boolean {
    const viewers = this.#viewers.filter(({ ended }) => ended === null);
    return this.#all.every(({ toldAt }) => toldAt < Infinity) && viewers.every(({ isLive }) => isLive);
  }

  async judge(): Promise<readonly string[]> {
    for (const userId of USERS) this.#send(this.#newBatch(userId, BOARD));
    await this.#relays.simulation.run(HEAL_MS, () => this.isDone());
    await this.#relays.simulation.run(SOON_MS);
    const broken: string[] = [];
    const rows = new Map<string, readonly string[]>();
    let isRead = false;
    void this.#readAll(rows, broken).then(() => (isRead = true));
    if (!(await this.#relays.simulation.run(HEAL_MS, () => isRead))) broken.push('the streams could not be read');
    for (const one of this.#all) if (!this.#mayBeLost(one)) broken.push(...verdictFaults(one));
    for (const viewer of this.#viewers) broken.push(...this.#viewerFaults(viewer, rows));
    return broken;
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  get #all(): readonly Sent[] {
    return [...this.#sent.values()];
  }

  #report(fault: string): void {
    this.#relays.trace(fault);
    this.broken.push(fault);
  }

  #mayBeLost({ sentAt, toldAt }: Sent): boolean {
    return this.#relays.mayBeLost(sentAt, toldAt);
  }

  #token(userId: string): string {
    return userToken(this.#relays.simulation, userId, ['invoke', 'host'], between(this.#random, 20_000, 90_000));
  }

  // Hosts.

  #newBatch(userId: string, suffix: string = pick(this.#random, SUFFIXES)): readonly Sent[] {
    const { now: sentAt } = this.#relays.simulation;
    const batch = this.#batches++;
    return Array.from({ length: between(this.#random, 1, 4) }, (_, place) => {
      const text = 'x'.repeat(this.#random() < 0.02 ? LARGE_CHARS : 5);
      const one: Sent = {
        ...{ id: `event-${batch}-${place}`, userId, suffix, name: pick(this.#random, NAMES), batch, place, text },
        ...{ sentAt, toldAt: Infinity, verdicts: [] },
      };
      this.#sent.set(one.id, one);
      return one;
    });
  }

  /** A host sends again what was acknowledged: it is a duplicate. */
  #sendAgain(): void {
    const told = this.#all.filter(({ toldAt }) => toldAt < Infinity);
    if (told.length > 0) this.#send([pick(this.#random, told)]);
  }

  /** Sends events, and sends those again of which nobody told that they are retained. */
  #send(events: readonly Sent[]): void {
    const [first] = events;
    if (!first) return;
    const isRest = this.#random() < 0.7;
    this.#relays.count(`ingest: ${isRest ? 'rest' : 'graphql'}`);
    const messages = events.map((one) => (isRest ? wireOf(one) : inputOf(one)));
    const token = this.#token(first.userId);
    const path = this.#random() < 0.7 ? 'fast' : 'yoga';
    const target = isRest
      ? sending('POST', '/ingest', { token, body: messages })
      : graphql(token, { query: INGEST, variables: { messages }, path });
    const askedAt = this.#relays.simulation.now;
    void ask(this.#network, target).then((answer) => {
      const again = events.filter((one, i) => !this.#take(one, { answer, place: i, askedAt }));
      if (again.length === 0) return;
      this.#relays.simulation.after(between(this.#random, 50, 1_500), 'sends again', () => this.#send(again));
    });
  }

  /** Takes the verdict about an event. Returns whether its host was ever told that it is retained. */
  #take(
    one: Sent,
    {
      answer,
      place,
      askedAt,
    }: { readonly answer: HttpAnswer | null; readonly place: number; readonly askedAt: number },
  ): boolean {
    const refusal = answer ? refusalOf(answer) : 'unreachable';
    if (refusal !== null) this.#relays.count(`ingest refused: ${refusal}`);
    const items = memberAt(answer?.body, 'items') ?? memberAt(answer?.body, 'data', 'ingestMessages', 'items');
    const item: unknown = Array.isArray(items) ? items[place] : null;
    const code = memberAt(item, 'error', 'code');
    if (code !== undefined) this.#relays.count(`event refused: ${String(code)}`);
    if (!answer || !item || code !== undefined) return one.toldAt < Infinity;
    const flag = (name: string): boolean => memberAt(item, name) === true;
    const verdict = {
      ...{ retained: flag('retained'), duplicate: flag('duplicate'), published: flag('published') },
      relay: answer.relay,
    };
    this.#relays.count(
      verdict.duplicate ? 'event: duplicate' : `event: retained${verdict.published ? ', published' : ''}`,
    );
    this.#relays.trace(`${one.id} is told by ${answer.relay}: ${JSON.stringify(verdict)}`);
    const { now } = this.#relays.simulation;
    const isMarked = one.toldAt <= askedAt && now - one.toldAt < MARKED_MS && !this.#mayBeLost(one);
    if (isMarked && !verdict.duplicate) this.#report(`${one.id} was acknowledged, and is retained again`);
    one.verdicts.push(verdict);
    one.toldAt = Math.min(one.toldAt, now);
    return true;
  }

  // Readers of streams.

  /** Reads a stream page by page, from any relay each: its rows keep their order, and none is missing. */
  #read(userId: string, suffix: string, relay: string | null): void {
    const began = this.#relays.simulation.now;
    const before = this.#rows.get(`${userId}/${suffix}`) ?? [];
    const told = this.#of(userId, suffix).filter(({ toldAt }) => toldAt < began);
    void this.#pages(userId, suffix, relay ?? undefined).then((rows) => {
      this.#relays.count(`read: ${rows ? 'a stream' : 'not answered'}`);
      if (rows) this.#noteRows({ userId, suffix, rows, before, told });
    });
  }

  #noteRows({ userId, suffix, rows, before, told }: ReadRows): void {
    const key = `${userId}/${suffix}`;
    const all = this.#of(userId, suffix);
    const isLost = this.#relays.mayBeLost(0, this.#relays.simulation.now);
    const faults = streamFaults(rows, all, (one) => told.includes(one) && !this.#mayBeLost(one));
    const kept = rows.filter((row) => before.includes(row));
    if (kept.join() !== before.join()) faults.push(`${before.join()} was read before, and now ${rows.join()}`);
    if (!isLost) for (const fault of faults) this.#report(`${key}: ${fault}`);
    if (rows.length > (this.#rows.get(key)?.length ?? 0)) this.#rows.set(key, rows);
  }

  #of(userId: string, suffix: string): readonly Sent[] {
    return this.#all.filter((one) => one.userId === userId && one.suffix === suffix);
  }

  /** Resolves with the ids of a stream's rows; null if a page was not answered, or is not complete. */
  async #pages(userId: string, suffix: string, relay?: string): Promise<readonly string[] | null> {
    const rows: string[] = [];
    const stream = encodeURIComponent(`${userId}/${suffix}`);
    for (let cursor = ''; ;) {
      const path = `/history/messages?stream=${stream}&limit=${PAGE}&include_payload=true${cursor}`;
      const answer = await ask(this.#network, get(path, ADMIN_TOKEN), { relay });
      const refusal = answer && refusalOf(answer);
      if (refusal === 'not_found' && cursor === '') return rows;
      const items = answer?.body?.['items'];
      if (!answer || refusal !== null || !Array.isArray(items)) return null;
      if (memberAt(answer.body, 'completeness', 'complete') !== true) return null;
      for (const item of items) {
        const id = String(memberAt(item, 'message_id'));
        this.#comparePayload(this.#sent.get(id), item);
        rows.push(id);
      }
      const next = answer.body?.['next_cursor'];
      if (typeof next !== 'string') return rows;
      cursor = `&cursor=${encodeURIComponent(next)}`;
    }
  }

  #comparePayload(one: Sent | undefined, item: unknown): void {
    const [state, payload] = [memberAt(item, 'payload_state'), memberAt(item, 'payload')];
    if (!one) return;
    if (JSON.stringify(payload) !== JSON.stringify(payloadOf(one)))
      this.#report(`${one.id} is read as ${String(state)}: ${JSON.stringify(payload)?.slice(0, 80)}`);
  }

  /** Reads all streams at each relay, and the counters of duplicates. */
  async #readAll(found: Map<string, readonly string[]>, broken: string[]): Promise<void> {
    for (const { process } of this.#relays.living) {
      for (const userId of USERS)
        for (const suffix of new Set(SUFFIXES)) {
          const key = `${userId}/${suffix}`;
          const told = this.#of(userId, suffix);
          const before = this.#rows.get(key) ?? [];
          const rows = await this.#untilAnswered(() => this.#pages(userId, suffix, process.name));
          if (!rows) broken.push(`${key} could not be read at ${process.name}`);
          else {
            this.#noteRows({ userId, suffix, rows, before, told });
            found.set(key, rows);
          }
        }
      const stats = await this.#untilAnswered(() =>
        ask(this.#network, get(`/dedup/stats?window_seconds=${WINDOW_SECONDS}`, ADMIN_TOKEN), { relay: process.name }),
      );
      broken.push(...this.#counterFaults(stats?.body ?? null, found).map((fault) => `${process.name}: ${fault}`));
    }
  }

  async #untilAnswered<T>(run: () => Promise<T | null>): Promise<T | null> {
    for (let tries = 0; tries < 10; tries++) {
      const answer = await run();
      if (answer !== null) return answer;
      await new Promise<void>((next) => this.#network.outside.after(300, 'reads again', next));
    }
    return null;
  }

  /** Counters that are exact say how many events there are, and at least how many were told to be duplicates. */
  #counterFaults(body: HttpAnswer['body'], found: ReadonlyMap<string, readonly string[]>): readonly string[] {
    const [seen, unique, duplicates] = ['seen', 'unique', 'duplicates'].map((name) => Number(body?.[name]));
    const isExact = body?.['exact'] === true;
    this.#relays.count(`counters: ${isExact ? 'exact' : 'not exact'}`);
    if (!isExact || seen === undefined || unique === undefined || duplicates === undefined) return [];
    const rows = [...found.values()].reduce((sum, ids) => sum + ids.length, 0);
    const told = this.#all.flatMap(({ verdicts }) => verdicts).filter(({ duplicate }) => duplicate).length;
    const counted = `${seen} seen, ${unique} unique and ${duplicates} duplicates are counted`;
    const isRight = unique === rows && seen === unique + duplicates && duplicates >= told;
    return isRight ? [] : [`${counted}, of ${rows} events with ${told} duplicates`];
  }

  // Viewers.

  /** Opens the session of a user's site, if it has none, or one more viewer. */
  #see(userId: string): void {
    const sessionId = this.#sessions.get(userId);
    if (sessionId === undefined) return void this.#openSession(userId);
    const viewers = this.#viewers.filter(({ options, ended }) => options.sessionId === sessionId && ended === null);
    if (this.#isOver || viewers.length >= VIEWERS || this.#random() > 0.3) return;
    const by = this.#random() < 0.5 ? 'site' : 'live';
    const names = this.#random() < 0.3 ? [pick(this.#random, NAMES)] : null;
    this.#relays.count(`viewer: ${by}`);
    this.#viewers.push(
      new Viewer({
        ...{ name: `viewer-${this.#viewers.length}`, network: this.#network, sessionId, names, by },
        trace: this.#relays.trace,
        token: () => this.#token(userId),
        onEnd: (code) => this.#ended(userId, sessionId, code),
      }),
    );
  }

  async #openSession(userId: string): Promise<void> {
    if (this.#opening.has(userId)) return;
    this.#opening.add(userId);
    const token = this.#token(userId);
    const began = this.#relays.simulation.now;
    await ask(this.#network, sending('PUT', `/sites/${SITE}`, { token, body: { client_id: 'desk' } }));
    const opened = await ask(this.#network, sending('POST', `/sites/${SITE}/sessions`, { token, body: {} }));
    const sessionId = opened?.body?.['session_id'];
    this.#opening.delete(userId);
    if (typeof sessionId !== 'string') return;
    this.#sessions.set(userId, sessionId);
    this.#openedAt.set(sessionId, [began, this.#relays.simulation.now]);
  }

  /** From when to when a session was opened. */
  readonly #openedAt = new Map<string, readonly [number, number]>();

  #ended(userId: string, sessionId: string, code: string): void {
    this.#relays.count(`viewer ended: ${code.slice(0, 40)}`);
    if (code === 'left') return;
    const [from, to] = this.#openedAt.get(sessionId) ?? [0, 0];
    if (this.#sessions.get(userId) === sessionId) this.#sessions.delete(userId);
    if (!this.#relays.mayBeLost(from, to)) this.#report(`a viewer of ${sessionId} ended: ${code}`);
  }

  #leave(): void {
    const viewers = this.#viewers.filter(({ ended }) => ended === null);
    if (viewers.length > 0) pick(this.#random, viewers).leave();
  }

  #viewerFaults({ options, segments }: Viewer, rows: ReadonlyMap<string, readonly string[]>): readonly string[] {
    const userId = [...this.#sessions].find(([, sessionId]) => sessionId === options.sessionId)?.[0];
    if (userId === undefined || this.#relays.mayBeLost(0, this.#relays.simulation.now)) return [];
    const { names, name } = options;
    const sent = this.#of(userId, BOARD).filter((one) => names === null || names.includes(one.name));
    return viewerFaults({ viewer: name, segments, sent, rows: rows.get(`${userId}/${BOARD}`) ?? [] });
  }

  // Troubles of connections, besides the faults of the deployment.

  #trouble(): void {
    const { open } = this.#network;
    if (this.#isOver || open.length === 0) return;
    const exchange = pick(this.#random, open);
    const ms = between(this.#random, 50, TROUBLE_MS);
    const kind = pick(this.#random, ['lost', 'unnoticed', 'up', 'down', 'both', 'slow'] as const);
    this.#relays.count(`trouble: ${kind}`);
    this.#relays.simulation.note(`${kind} ${ms}`);
    if (kind === 'lost') return exchange.break('both');
    if (kind === 'unnoticed') return exchange.break(this.#random() < 0.5 ? 'relay' : 'requester');
    if (kind === 'slow') return exchange.slow(ms);
    exchange.stall(kind, ms);
  }
}

type ReadRows = {
  readonly userId: string;
  readonly suffix: string;
  readonly rows: readonly string[];
  /** The rows that were read before this read began. */
  readonly before: readonly string[];
  /** The events that were told before it began. */
  readonly told: readonly Sent[];
};

function payloadOf({ id, name, text }: Sent): object {
  return { name, data: { id, text } };
}

function wireOf(one: Sent): object {
  const { id, suffix } = one;
  const from = { client_id: 'desk', instance_id: 'desk-1' };
  return { message_id: id, kind: 'event', stream_suffix: suffix, ...from, payload: payloadOf(one) };
}

function inputOf(one: Sent): object {
  const { id, suffix } = one;
  const from = { clientId: 'desk', instanceId: 'desk-1' };
  return { messageId: id, kind: 'event', streamSuffix: suffix, ...from, payload: payloadOf(one) };
}
