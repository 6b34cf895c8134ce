/**
 * A backend over partitions that several processes own: each call runs here if this process owns its partition, and
 * otherwise with the owner.
 */
import type { Backend, Bus, PortName } from '../../core/backend.ts';
import { publishReport } from '../../core/commands/command-hints.ts';
import type { CommandStore, ReportResult } from '../../core/commands/command-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { CallboardError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { gapOf, type EvidenceSource, type ObservedSource } from '../../core/completeness.ts';
import type { PageRequest, Scan } from '../../core/page.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { joinGaps, mergePages, type PageSource } from './merging.ts';
import type { OwnerTable } from './owners.ts';
import type { Placement } from './placement.ts';
import { isChange, Requests, runIn, type OwnerAnswer, type PortCall } from './requests.ts';
import { Responder } from './responder.ts';
import { ROUTES, routeOf, type AnyRoute, type OwnStores, type PartitionStores, type RoutedStores } from './routes.ts';
import { SeenConnections } from './connections.ts';
import { readMessage, type Transport } from './transport.ts';

/** How long a call waits for the owner of its partition: longer than a takeover takes. */
const OWNER_MS = 15_000;
/** How long an answer of all owners waits for each of them. */
const EACH_OWNER_MS = 1_000;

/** The members of a backend that are no ports and no methods of one. */
type OwnMembers = Omit<Backend, PortName>;

type RoutedOptions = {
  readonly placement: Placement;
  readonly owners: OwnerTable;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Log;
  /** The same in all processes. */
  readonly sha256: (text: string) => string;
  /** The stores of this process, for what is not in partitions. */
  readonly own: OwnStores;
  /** The other members of the backend. `close` is called when the backend is closed. */
  readonly members: OwnMembers;
  /** As in `CommandStore` and `HistoryStore`; the same in all partitions. */
  readonly windowMs: number;
  readonly retentionMs: number;
  /** As in `PauseStore`. */
  readonly permitMs: number;
  readonly quietMs: number;
};

/** Creates the backend. It answers the requests of other processes, too. */
export function createRoutedBackend(options: RoutedOptions): Backend {
  const { owners, placement, transport, own, members, windowMs, retentionMs, permitMs, quietMs } = options;
  const requests = new Requests({ ...options, runHere: (partition, call) => router.at(partition, call) });
  const router = new Router(options, requests);
  const responder = new Responder({ ...options, run: (stores, call) => runForOther(own.bus, stores, call) });
  transport.onText((from, text) => {
    const message = readMessage(text);
    if (!message) options.log.warn({ from, characters: text.length }, 'a message of another relay cannot be read');
    else if (message.head.kind === 'request') responder.receive(from, message.head, message.body);
    else requests.receive(message.head, message.body);
  });
  transport.onLoss(() => requests.again());
  const stop = owners.onMove((partition) => requests.moved(partition));
  const routed = routedStores(router);
  const seen = new SeenConnections(options.sha256);
  const noted = (found: readonly (Connection | null)[]): readonly (Connection | null)[] => {
    for (const connection of found) if (connection) seen.note(connection);
    return found;
  };
  return {
    ...members,
    commands: {
      ...routed.commands,
      windowMs,
      admit: (request) => routed.commands.admit(request.seen ? seen.sent(request) : request),
    },
    waiters: routed.waiters,
    nodes: { ...own.nodes, ...routed.nodes },
    inspector: routed.inspector,
    connections: {
      ...own.connections,
      ...routed.connections,
      get(keys) {
        const found = routed.connections.get(keys);
        // What is read here costs nothing the next time either.
        return found instanceof Promise ? found.then(noted) : found;
      },
      lastSeen: (key) => (owners.local(placement.ofUser(key.userId)) ? null : seen.last(key)),
    },
    reconnects: routed.reconnects,
    contexts: routed.contexts,
    history: { ...routed.history, retentionMs },
    dedup: { ...own.dedup, ...routed.dedup },
    sites: routed.sites,
    sessions: routed.sessions,
    audit: { ...own.audit, ...routed.audit },
    pauses: { ...own.pauses, ...routed.pauses, permitMs, quietMs },
    tickets: routed.tickets,
    revocations: routed.revocations,
    devices: routed.devices,
    bus: own.bus,
    async close() {
      stop();
      requests.close();
      await members.close();
    },
  };
}

/**
 * Runs a call of another process. A report is published here, not there: messages of one process arrive in their order,
 * so a caller gets the reports of its command before the end of the command, which comes from here as well.
 */
function runForOther(bus: Bus, stores: PartitionStores, call: PortCall): MaybePromise<unknown> {
  if (call.port !== 'commands' || call.method !== 'report') return runIn(stores, call);
  // The route of the method says what its arguments are.
  const [key, report] = call.args as Parameters<CommandStore['report']>;
  return thenDo(stores.commands.report(key, report), (result): ReportResult => {
    if (result.kind !== 'recorded') return result;
    publishReport(bus, key, report);
    return { ...result, isPublished: true };
  });
}

/** Makes a method for each route of the table. */
function routedStores(router: Router): RoutedStores {
  const stores = Object.entries(ROUTES).map(([port, routes]) => {
    const methods = Object.keys(routes).flatMap((method) => {
      const route = routeOf(port, method);
      if (!route || route.kind === 'here') return [];
      return [[method, (...args: unknown[]) => router.run(route, { port, method, args })] as const];
    });
    return [port, Object.fromEntries(methods)] as const;
  });
  // The table has each method of these ports, and its route answers what the method does.
  return Object.fromEntries(stores) as unknown as RoutedStores;
}

type RouteOfKind<K> = Extract<AnyRoute, { readonly kind: K }>;

/** Follows the routes of calls. */
class Router {
  readonly #options: RoutedOptions;
  readonly #requests: Requests;

  constructor(options: RoutedOptions, requests: Requests) {
    this.#options = options;
    this.#requests = requests;
  }

  run(route: Exclude<AnyRoute, { readonly kind: 'here' }>, call: PortCall): MaybePromise<unknown> {
    const { placement } = this.#options;
    switch (route.kind) {
      case 'one':
        return this.at(route.partition(placement, ...call.args), call, route.isFollowed);
      case 'each':
        return this.#each(route, call);
      case 'page':
        return this.#page(route, call);
      case 'all':
        return this.#all(route, call);
      case 'owned':
        return this.#owned(route, call);
      case 'pure':
        return route.of(placement, ...call.args);
    }
  }

  /**
   * Runs a call in one partition. What is read here counts only while this process has its lease. `isFollowed`: as in the
   * routes.
   */
  at(partition: number, call: PortCall, isFollowed = false): MaybePromise<unknown> {
    const { owners } = this.#options;
    const stores = owners.local(partition);
    if (!stores) return this.#request(partition, call).then(({ value }) => value);
    if (owners.mayAnswer) return isFollowed ? this.#recorded(runIn(stores, call)) : runIn(stores, call);
    if (isChange(call.port, call.method)) return this.#changeIn(stores, partition, call);
    // A read that runs now may be answered later, together with others, after this process has become the owner again.
    return this.#unlessLost(owners.answerable()).then(() => this.at(partition, call));
  }

  /**
   * Runs a change without a lease: if another process owns the partition already, the log refuses it. A change that is
   * not recorded, such as the cancel of a command that is unknown here, is as a read: its answer counts with a lease.
   */
  #changeIn(stores: PartitionStores, partition: number, call: PortCall): MaybePromise<unknown> {
    const { owners } = this.#options;
    const before = owners.decided(partition);
    const value = runIn(stores, call);
    if (owners.decided(partition) !== before) return this.#recorded(value);
    const found = (): MaybePromise<unknown> => {
      if (owners.local(partition) !== stores) return this.at(partition, call);
      return owners.mayAnswer ? value : this.#unlessLost(owners.answerable()).then(found);
    };
    return this.#unlessLost(owners.answerable()).then(found);
  }

  /**
   * Waits. Rejects if this process has lost a partition meanwhile: whoever waits may have read before what was not
   * recorded, and could answer when this process owns the partition again.
   */
  async #unlessLost<T>(wait: Promise<T>): Promise<T> {
    const { owners } = this.#options;
    const before = owners.losses;
    const found = await wait;
    return owners.losses === before ? found : failLost();
  }

  /**
   * Resolves with what a change found, once it is recorded. Without that, what follows from it could be decided after
   * another process has taken the partition, and with it the change, and leave when this process owns the partition again.
   */
  #recorded<T>(found: MaybePromise<T>): Promise<T> {
    const { onRecord } = this.#options.members;
    return new Promise((resolve, reject) => {
      if (onRecord) onRecord(() => resolve(found), { destroy: () => reject(lost()) });
      else resolve(found);
    });
  }

  /** Runs a call in one of all partitions. Null: its owner does not answer. */
  async #poll(partition: number, call: PortCall): Promise<OwnerAnswer | null> {
    const { owners } = this.#options;
    const stores = owners.local(partition);
    if (!stores) return this.#unlessLost(this.#requests.ask(partition, call, EACH_OWNER_MS));
    if (owners.mayAnswer) return { value: await runIn(stores, call), chars: 0 };
    if (isChange(call.port, call.method)) return { value: await this.#changeIn(stores, partition, call), chars: 0 };
    return this.#unlessLost(owners.answerable()).then(() => this.#poll(partition, call));
  }

  /** Runs a call in all partitions. Returns their answers, and a gap for each owner that gave none. */
  async #pollAll(source: EvidenceSource | null, call: PortCall): Promise<Polled> {
    const partitions = this.#partitions();
    const found = await Promise.all(partitions.map((partition) => this.#poll(partition, call)));
    const silent = partitions.filter((_, i) => found[i] === null);
    if (source === null && silent.length > 0) failSilent();
    const gaps = source === null ? [] : this.#gaps(source, silent);
    return { parts: found.flatMap((answer) => (answer ? [answer.value] : [])), gaps };
  }

  #partitions(): readonly number[] {
    return Array.from({ length: this.#options.placement.count }, (_, partition) => partition);
  }

  #gaps(source: EvidenceSource, silent: readonly number[]): readonly ObservedSource[] {
    const { owners, clock } = this.#options;
    const now = clock.now();
    return joinGaps(
      silent.map((partition) => {
        const owner = owners.ownerOf(partition);
        return gapOf(source, now, owner?.nodeId ?? null, owner ? 'node_silent' : 'store_unavailable');
      }),
    );
  }

  #each(route: RouteOfKind<'each'>, call: PortCall): MaybePromise<unknown> {
    const [items, ...rest] = call.args;
    if (!Array.isArray(items) || items.length === 0) return [];
    const { placement } = this.#options;
    const places = Map.groupBy(items.keys(), (i) => route.partition(placement, items[i]));
    const [only, ...others] = places.keys();
    if (others.length === 0 && only !== undefined && only !== null) return this.at(only, call);
    const found: unknown[] = [];
    const asked = [...places].map(([partition, indexes]) => {
      const part = { ...call, args: [indexes.map((i) => items[i] as unknown), ...rest] };
      const answers = partition === null ? this.#eachOfAll(route, part) : this.at(partition, part);
      return thenDo(answers, (values) =>
        indexes.forEach((i, n) => (found[i] = Array.isArray(values) ? values[n] : null)),
      );
    });
    return asked.some((one) => one instanceof Promise) ? Promise.all(asked).then(() => found) : found;
  }

  /** Answers items that concern all partitions. */
  async #eachOfAll(route: RouteOfKind<'each'>, call: PortCall): Promise<unknown> {
    const [items] = call.args;
    if (route.source === null || !Array.isArray(items)) return [];
    const { parts, gaps } = await this.#pollAll(route.source, call);
    const lists = parts.map((part): readonly unknown[] => (Array.isArray(part) ? part : []));
    return items.map((_, i) =>
      route.merge(
        lists.map((list) => list[i]),
        [items, ...call.args.slice(1)],
        gaps,
      ),
    );
  }

  #page(route: RouteOfKind<'page'>, call: PortCall): MaybePromise<unknown> {
    const [first, second, ...rest] = call.args;
    // The table says which argument is the page.
    const page = (route.pageAt === 0 ? first : second) as PageRequest;
    const args = [first, page, ...rest] as const;
    const partition = route.partition(this.#options.placement, ...args);
    if (partition === null) return this.#pageOfAll(route, call, page);
    if (this.#options.owners.local(partition)) return this.at(partition, call);
    // The owner may end a page early.
    const source = this.#sourceOf(route, call, (part) => this.#request(partition, part));
    return mergePages([source], page, route.order(...args));
  }

  /** Runs a call with the owner of a partition. Rejects with `store_unavailable` if that does not answer. */
  async #request(partition: number, call: PortCall): Promise<OwnerAnswer> {
    const sent = this.#requests.ask(partition, repeatable(call), OWNER_MS);
    return (await this.#unlessLost(sent)) ?? failSilent();
  }

  /** Reads pages of one partition. `ask`: resolves with the answer of its owner; null: there is none. */
  #sourceOf(
    { pageAt }: RouteOfKind<'page'>,
    call: PortCall,
    ask: (call: PortCall) => Promise<OwnerAnswer | null>,
  ): PageSource {
    return {
      read: async (page) => {
        const answer = await ask({ ...call, args: call.args.with(pageAt, page) });
        // The route is one of pages.
        return answer && { scan: answer.value as Scan<unknown>, chars: answer.chars };
      },
    };
  }

  async #pageOfAll(route: RouteOfKind<'page'>, call: PortCall, page: PageRequest): Promise<Scan<unknown>> {
    const silent: number[] = [];
    const sources = this.#partitions().map((partition) =>
      this.#sourceOf(route, call, async (part) => {
        const answer = await this.#poll(partition, part);
        if (answer === null) silent.push(partition);
        return answer;
      }),
    );
    const [first, ...rest] = call.args;
    const scan = await mergePages(sources, page, route.order(first, page, ...rest.slice(1)));
    return { ...scan, gaps: joinGaps([...scan.gaps, ...this.#gaps(route.source, silent)]) };
  }

  #all(route: RouteOfKind<'all'>, call: PortCall): MaybePromise<unknown> {
    const partition = route.partition(this.#options.placement, ...call.args);
    if (partition !== null) return this.at(partition, call);
    return this.#pollAll(route.source, call).then(({ parts, gaps }) => route.merge(parts, call.args, gaps));
  }

  #owned(route: RouteOfKind<'owned'>, call: PortCall): MaybePromise<unknown> {
    const { owners } = this.#options;
    const stores = this.#partitions().flatMap((partition) => owners.local(partition) ?? []);
    const parts = stores.map((store) => runIn(store, call));
    if (!parts.some((part) => part instanceof Promise)) return route.merge(parts, call.args);
    return Promise.all(parts).then((found) => route.merge(found, call.args));
  }
}

/**
 * A request is sent again, to the next owner too, until it is answered. So an admission is looked for by its id, also if
 * this relay has made the id: it may be admitted already.
 */
function repeatable(call: PortCall): PortCall {
  const [request] = call.args;
  if (call.port !== 'commands' || call.method !== 'admit' || !isRecord(request)) return call;
  return { ...call, args: [{ ...request, repeated: true }] };
}

type Polled = { readonly parts: readonly unknown[]; readonly gaps: readonly ObservedSource[] };

function lost(): CallboardError {
  return new CallboardError('store_unavailable', 'Another relay owns the data now.', { retryAfterMs: 1_000 });
}

function failLost(): never {
  throw lost();
}

function failSilent(): never {
  throw new CallboardError('store_unavailable', 'The owner of the data does not answer.', { retryAfterMs: 1_000 });
}
