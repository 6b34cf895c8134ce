/**
 * What this node keeps in memory of the links of its clients: the queue of commands of each link, with the interface of
 * its socket, and the bytes that each connected client advertises and reports. Writes nothing to sockets.
 */
import { ByClient, ChurnMap } from '../collections.ts';
import type { ConnectResult } from '../connections/connection-store.ts';
import type { ActionAdvertisement, ClientType, DisconnectCause } from '../connections/connection.ts';
import type { ContextReport, ReportOutcome, ReportPart } from '../contexts/context.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { BACK_PRESSURE_BYTES, FORGET_MS, IN_FLIGHT, LEAVING_LINKS } from '../limits.ts';
import type { Clock, Span } from '../ports.ts';
import type { Holdings, Shares } from '../shares/shares.ts';
import type { TraceFields } from '../trace-context.ts';
import type { Command } from './command.ts';
import type { Binding, CommandLoad, DispatchClaim, DispatchResult, MarkedDispatch, Received } from './stores.ts';

/** A recorded dispatch that is not yet written to its link. */
export type Held = {
  readonly result: Extract<DispatchResult, { kind: 'dispatch' }>;
  readonly at: number;
  /** A cancel that was requested while the dispatch was held. */
  cancel: { readonly reason: string | null } | null;
  /** Whether the command was written to an earlier link, on which it never arrived. */
  readonly again?: true;
};

/** The span of a command that is written. `progressed`: its first progress was noted. */
type OpenSpan = { readonly span: Span; progressed: boolean };

/** A reservation of room in a link's window for a command that is not admitted yet. It counts as a pending dispatch. */
export type Claim = DispatchClaim & { readonly linkQueue: LinkQueue; readonly key: CommandKey };

/** Code that waits for a change of a link's queue. `wake` is called as soon as `over` returns true. */
type LinkQueueWait = { readonly over: (linkQueue: LinkQueue) => boolean; readonly wake: () => void };

/**
 * The queue and the window of one link on this node. Queue and window are created at their first use, because each of
 * thousands of idle links has such an object.
 */
export class LinkQueue {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /** The commands in the window whose admission is not answered yet, by id; created with the first one. */
  claims: Map<string, Claim> | null = null;
  /** Whether commands may be dispatched on the link. False until the client is welcomed. */
  open = false;
  /** Whether dispatching has ended for good on this link. Queued commands then wait for the client's next link. */
  quiet = false;
  /**
   * Commands that are dispatched but not written yet, because the socket had back-pressure when the store answered. In
   * the order of dispatch; created with the first one.
   */
  held: Map<string, Held> | null = null;
  /**
   * The cancels, with their reasons, that were requested before the client was welcomed: they are sent then. Created with
   * the first one.
   */
  cancels: Map<string, string | null> | null = null;
  /** The number of dispatches that the store has not answered yet. */
  pendingDispatches = 0;
  /**
   * The number of dispatches that are retried because the store was unavailable. No other dispatch begins until the
   * store has answered these, so that the order holds.
   */
  retriedDispatches = 0;
  /** The code that waits for a change of this queue; null while none does. */
  waits: LinkQueueWait[] | null = null;
  /** The spans of commands that are written and have not ended; created with the first one. */
  spans: Map<string, OpenSpan> | null = null;
  #queue: ChurnMap<string, CommandKey> | null = null;
  #window: ChurnMap<string, CommandKey> | null = null;

  constructor(client: ClientKey, binding: Binding, link: ClientLink) {
    this.client = client;
    this.binding = binding;
    this.link = link;
  }

  /** The queued commands by id, in the order of admission. A Map, so that a row that arrives twice is queued once. */
  get queue(): ChurnMap<string, CommandKey> {
    return (this.#queue ??= new ChurnMap());
  }

  /** The commands that are dispatched, or being dispatched, and have not ended, by id. */
  get window(): ChurnMap<string, CommandKey> {
    return (this.#window ??= new ChurnMap());
  }

  get queued(): number {
    return this.#queue?.size ?? 0;
  }

  get inFlight(): number {
    return this.#window?.size ?? 0;
  }
}

/**
 * Whether the link still has commands to finish: those in flight, and on a link that is not quiet also those queued.
 */
export function isBusy({ quiet, queued, inFlight }: LinkQueue): boolean {
  return inFlight > 0 || (!quiet && queued > 0);
}

export function isHolding({ held }: LinkQueue): boolean {
  return held !== null && held.size > 0;
}

/**
 * Whether one more dispatch may begin on this link now. Calls `backlog` last, because that call tells the link that a
 * dispatch waits for it.
 */
export function mayDispatch(linkQueue: LinkQueue): boolean {
  const { open, quiet, retriedDispatches, inFlight, link } = linkQueue;
  if (!open || quiet || retriedDispatches > 0 || inFlight >= IN_FLIGHT || isHolding(linkQueue)) return false;
  return link.backlog() < BACK_PRESSURE_BYTES;
}

/**
 * Closes a link that a link of `instanceId` replaces. If that is the same instance, a client that counts its attempts
 * may connect again: the relay can tell which of its links is the later one.
 */
export function closeReplaced({ binding, link }: LinkQueue, instanceId: string | null): void {
  link.close('replaced', instanceId, binding.tellsReceived === true && binding.instanceId === instanceId);
}

/** Holds dispatches that never arrived over an earlier link: they are written before all others. */
export function holdAgain(linkQueue: LinkQueue, again: readonly MarkedDispatch[], now: number): void {
  for (const result of again) {
    const { userId, clientId, commandId } = result.command;
    linkQueue.window.set(commandId, { userId, clientId, commandId });
    (linkQueue.held ??= new Map()).set(commandId, { result, at: now, cancel: null, again: true });
  }
}

/** Whether the store has answered every dispatch that was begun. */
export function isAnswered({ pendingDispatches }: LinkQueue): boolean {
  return pendingDispatches === 0;
}

/** Resolves once `over` returns true for the link, or once the link is gone and all its waits are ended. */
export function waitFor(linkQueue: LinkQueue, over: LinkQueueWait['over']): Promise<void> {
  return new Promise((wake) => {
    (linkQueue.waits ??= []).push({ over, wake });
    wakeWaits(linkQueue);
  });
}

export function wakeWaits(linkQueue: LinkQueue): void {
  const { waits } = linkQueue;
  if (waits === null) return;
  linkQueue.waits = null;
  for (const wait of waits) {
    if (wait.over(linkQueue)) wait.wake();
    else (linkQueue.waits ??= []).push(wait);
  }
}

/** Ends all waits, because the link is gone. */
export function endWaits(linkQueue: LinkQueue): void {
  const { waits } = linkQueue;
  linkQueue.waits = null;
  for (const { wake } of waits ?? []) wake();
}

/**
 * The client links of this node. At most one link of each client is bound: the client's commands are dispatched on it.
 * A leaving link is no longer bound, but some of its commands still run, so it is kept until its socket is gone.
 */
export class LinkQueues {
  readonly #bound = new ByClient<LinkQueue>();
  readonly #leaving = new ByClient<readonly LinkQueue[]>();

  /**
   * Binds the link. Returns the link that it replaces: the one that was bound, or else a leaving link of the same
   * instance.
   */
  bind(linkQueue: LinkQueue): LinkQueue | undefined {
    const { client, binding } = linkQueue;
    const sameInstance = (other: LinkQueue): boolean => other.binding.instanceId === binding.instanceId;
    const previous = this.#bound.get(client) ?? this.leaving(client).find(sameInstance);
    this.#bound.set(client, linkQueue);
    return previous;
  }

  /**
   * Turns the bound link into a leaving one; does nothing to any other link. Returns the leaving link that exceeds the
   * limit and must be closed.
   */
  retire(linkQueue: LinkQueue): LinkQueue | undefined {
    const { client } = linkQueue;
    if (this.find(client) !== linkQueue) return undefined;
    this.#bound.delete(client);
    const leaving = [...this.leaving(client), linkQueue];
    this.#leaving.set(client, leaving);
    return leaving.length > LEAVING_LINKS ? leaving[0] : undefined;
  }

  remove(linkQueue: LinkQueue): void {
    const { client } = linkQueue;
    if (this.find(client) === linkQueue) this.#bound.delete(client);
    const left = this.leaving(client).filter((other) => other !== linkQueue);
    if (left.length > 0) this.#leaving.set(client, left);
    else this.#leaving.delete(client);
  }

  /** Returns the bound link of this client. */
  find(client: ClientKey): LinkQueue | undefined {
    return this.#bound.get(client);
  }

  leaving(client: ClientKey): readonly LinkQueue[] {
    return this.#leaving.size === 0 ? NONE : (this.#leaving.get(client) ?? NONE);
  }

  /** Returns the link that this command was dispatched on, or is being dispatched on. */
  runningOn(key: CommandKey): LinkQueue | undefined {
    const runsIt = ({ window }: LinkQueue): boolean => window.has(key.commandId);
    const bound = this.find(key);
    return bound && runsIt(bound) ? bound : this.leaving(key).find(runsIt);
  }

  /** Whether the link is registered, bound or leaving. */
  has(linkQueue: LinkQueue): boolean {
    return this.find(linkQueue.client) === linkQueue || this.leaving(linkQueue.client).includes(linkQueue);
  }

  get size(): number {
    let leaving = 0;
    for (const linkQueues of this.#leaving.values()) leaving += linkQueues.length;
    return this.#bound.size + leaving;
  }

  /** The numbers of queued commands and of commands in flight on all links. */
  get load(): CommandLoad {
    const load = { inFlight: 0, queued: 0 };
    for (const { inFlight, queued } of this.values()) {
      load.inFlight += inFlight;
      load.queued += queued;
    }
    return load;
  }

  /** Yields all links, bound and leaving. */
  *values(): Generator<LinkQueue> {
    yield* this.#bound.values();
    for (const linkQueues of this.#leaving.values()) yield* linkQueues;
  }
}

const NONE: readonly LinkQueue[] = [];

// The interface between core and the gateway for one client link. Types only.

/**
 * A client's socket as core sees it; the gateway implements it. No method may throw. After `close` the methods do
 * nothing.
 */
export interface ClientLink {
  /**
   * Writes the command. Called at most once per command and link, and only after its dispatch is recorded. `trace`:
   * the trace that the client's own spans belong to; null: the one that the caller gave.
   */
  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void;
  sendCancel(commandId: string, reason: string | null): void;
  /** Returns the number of bytes that the socket has not accepted yet. */
  backlog(): number;
  /**
   * Sends the cause and closes. `instanceId`: the successor of a replaced instance. `mayReturn`: the client may connect
   * again although the link is replaced. As with any close, `LinkSession.closed` is called in the end.
   */
  close(cause: DisconnectCause, instanceId: string | null, mayReturn?: boolean): void;
}

export type HelloRequest = {
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: ClientType;
  /** Whether the client knows places: it runs a command that names a context there and nowhere else. */
  readonly places?: boolean;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  /** What a client says that counts its attempts to connect; null or absent: it does not. */
  readonly resumes?: Resumes | null;
};

/**
 * What a client says of its earlier links. `attempt`: the number of this attempt to connect, which grows with each. Of
 * the links of one instance the one with the greatest attempt wins. `received`: the commands that arrived over earlier
 * links and whose ends it still has to report. Nothing else can arrive any more, because the client has given up its
 * earlier sockets.
 */
export type Resumes = { readonly attempt: number; readonly received: Received };

// Counts the bytes that each connected client advertises and reports, and refuses more than its user may hold.

type Parts = { readonly shares: Shares; readonly clock: Clock };

/** What the relay holds for one client besides its link. */
type Advertiser = {
  readonly holdings: Holdings;
  /** The number of bytes of the metadata and the actions that the client last sent. */
  metadata: number;
  actions: number;
  /** What the client reported; null before its first report. */
  rows: ReportedRows | null;
  /** The number of open links on this node. It is two for a moment when one link replaces the other. */
  links: number;
  closedAt: number;
};

/**
 * Accounts for the share `advertised_bytes`: metadata and actions of clients, and the contexts and windows that they
 * report. `open`, `advertise` and `report` throw `share_exceeded` or `store_full` before they ask the store, and count
 * only what the store accepted. The bytes of a client count until FORGET_MS after its last link on this node closed. A
 * new hello replaces the metadata and the actions; a hello of another instance also removes the contexts and windows.
 */
export class Advertised {
  readonly #parts: Parts;
  readonly #advertisers = new ByClient<Advertiser>();
  /** The clients without a link, in the order in which they lost it. */
  readonly #closed = new Map<Advertiser, ClientKey>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Registers a link. Each call that resolves must be followed by one call of `closed`. */
  async open(
    client: ClientKey,
    hello: Pick<HelloRequest, 'metadata' | 'actions'>,
    connect: () => ConnectResult | Promise<ConnectResult>,
  ): Promise<ConnectResult> {
    this.#forget();
    const known = this.#advertisers.get(client);
    const holdings = known?.holdings ?? this.#parts.shares.of(client.userId);
    const { metadata, actions } = helloWeight(hello);
    const growth = metadata + actions - (known ? known.metadata + known.actions : 0);
    return claimed(holdings, growth, connect, ({ kind }) => {
      const advertiser = this.#advertisers.get(client) ?? newAdvertiser(holdings);
      this.#advertisers.set(client, advertiser);
      this.#closed.delete(advertiser);
      advertiser.links++;
      const gone = kind === 'resumed' ? 0 : rowsGone(advertiser);
      count(holdings, metadata + actions - advertiser.metadata - advertiser.actions - gone);
      advertiser.metadata = metadata;
      advertiser.actions = actions;
    });
  }

  /** Replaces what a link advertises. `act` returns null if it changed nothing. */
  async advertise<T>(
    client: ClientKey,
    actions: readonly ActionAdvertisement[],
    act: () => T | null | Promise<T | null>,
  ): Promise<T | null> {
    this.#forget();
    const advertiser = this.#advertisers.get(client);
    if (!advertiser) return act();
    const weight = actionsWeight(actions);
    return claimed(advertiser.holdings, weight - advertiser.actions, act, (done) => {
      if (done === null) return;
      count(advertiser.holdings, weight - advertiser.actions);
      advertiser.actions = weight;
    });
  }

  async report(
    client: ClientKey,
    report: ContextReport,
    act: () => ReportOutcome | Promise<ReportOutcome>,
  ): Promise<ReportOutcome> {
    this.#forget();
    const advertiser = this.#advertisers.get(client);
    if (!advertiser) return act();
    const change = (advertiser.rows ??= new ReportedRows()).change(report);
    return claimed(advertiser.holdings, change.growth(), act, (outcome) => {
      if (outcome === 'taken') count(advertiser.holdings, change.apply());
    });
  }

  /** Called when a link of the client has closed. */
  closed(client: ClientKey): void {
    const advertiser = this.#advertisers.get(client);
    if (!advertiser || --advertiser.links > 0) return;
    advertiser.closedAt = this.#parts.clock.monotonic();
    this.#closed.set(advertiser, client);
  }

  #forget(): void {
    const due = this.#parts.clock.monotonic() - FORGET_MS;
    for (const [advertiser, client] of this.#closed) {
      if (advertiser.closedAt > due) return;
      this.#closed.delete(advertiser);
      this.#advertisers.delete(client);
      count(advertiser.holdings, -(advertiser.metadata + advertiser.actions + rowsGone(advertiser)));
    }
  }
}

function newAdvertiser(holdings: Holdings): Advertiser {
  return { holdings, metadata: 0, actions: 0, rows: null, links: 0, closedAt: 0 };
}

/** Removes what the client reported. Returns the bytes that it weighed. */
function rowsGone({ rows }: Advertiser): number {
  return rows?.clear() ?? 0;
}

/** Reserves the growth while the store is asked, then lets `counted` count what the store accepted. */
async function claimed<T>(
  holdings: Holdings,
  growth: number,
  act: () => T | Promise<T>,
  counted: (result: T) => void,
): Promise<T> {
  const room = Math.max(0, growth);
  if (room > 0) holdings.claim('advertised_bytes', room);
  let result: T;
  try {
    result = await act();
  } finally {
    holdings.release('advertised_bytes', room);
  }
  counted(result);
  return result;
}

function count(holdings: Holdings, bytes: number): void {
  if (bytes > 0) holdings.take('advertised_bytes', bytes);
  else holdings.release('advertised_bytes', -bytes);
}

// Estimates the bytes that advertisements, contexts and windows hold in memory.

/**
 * The bytes that one context or window takes besides its texts: the object, its index entries and its fixed fields. The
 * number is close to what was measured for a context with empty texts.
 */
const ROW_BYTES = 512;
const ACTION_BYTES = 128;

function helloWeight({ metadata, actions }: Pick<HelloRequest, 'metadata' | 'actions'>) {
  return { metadata: metadata === null ? 0 : utf8Length(metadata), actions: actionsWeight(actions) };
}

function actionsWeight(actions: readonly ActionAdvertisement[]): number {
  return actions.reduce((sum, action) => sum + ACTION_BYTES + textsOf(action), 0);
}

/** The change that one report makes, in bytes. Both methods read the rows as they are at the time of the call. */
type RowsChange = { growth(): number; apply(): number };

/** The weight in bytes of each context and window of one client. It has as many entries as the client has rows. */
class ReportedRows {
  #contexts: Weights | null = null;
  #windows: Weights | null = null;

  change({ contexts, windows }: ContextReport): RowsChange {
    const changes = [
      ...(contexts ? [changeOf((this.#contexts ??= new Weights()), contexts, ({ contextId }) => contextId)] : []),
      ...(windows ? [changeOf((this.#windows ??= new Weights()), windows, ({ windowId }) => windowId)] : []),
    ];
    return {
      growth: () => changes.reduce((sum, { growth }) => sum + growth(), 0),
      apply: () => changes.reduce((sum, { apply }) => sum + apply(), 0),
    };
  }

  /** Removes all rows. Returns the bytes that they weighed. */
  clear(): number {
    const bytes = (this.#contexts?.bytes ?? 0) + (this.#windows?.bytes ?? 0);
    this.#contexts = null;
    this.#windows = null;
    return bytes;
  }
}

class Weights {
  readonly rows = new Map<string, number>();
  bytes = 0;
}

function changeOf<T extends object>(weights: Weights, part: ReportPart<T>, idOf: (row: T) => string): RowsChange {
  const set = part.set.map((row): readonly [string, number] => [idOf(row), ROW_BYTES + textsOf(row)]);
  const weightOf = (id: string): number => weights.rows.get(id) ?? 0;
  const after = (): number => {
    if (part.snapshot) return set.reduce((sum, [, bytes]) => sum + bytes, 0);
    const added = set.reduce((sum, [id, bytes]) => sum + bytes - weightOf(id), 0);
    return weights.bytes + added - part.removed.reduce((sum, id) => sum + weightOf(id), 0);
  };
  return {
    growth: () => after() - weights.bytes,
    apply() {
      const growth = after() - weights.bytes;
      if (part.snapshot) weights.rows.clear();
      for (const id of part.removed) weights.rows.delete(id);
      for (const [id, bytes] of set) weights.rows.set(id, bytes);
      weights.bytes += growth;
      return growth;
    },
  };
}

function textsOf(row: object): number {
  let bytes = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += utf8Length(value);
  return bytes;
}
