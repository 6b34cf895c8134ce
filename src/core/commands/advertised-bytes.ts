/**
 * Counts the bytes that each connected client advertises and reports, and refuses advertisements and reports beyond its
 * user's share.
 */
import { ByClient } from '../collections.ts';
import type { ConnectResult } from '../connections/connection-store.ts';
import type { ActionAdvertisement } from '../connections/connection.ts';
import type { ContextReport, ReportOutcome, ReportPart } from '../contexts/context.ts';
import type { ClientKey } from '../ids.ts';
import { utf8Length } from '../json.ts';
import { FORGET_MS } from '../limits.ts';
import type { Clock } from '../ports.ts';
import type { Holdings, Shares } from '../shares/shares.ts';
import type { HelloRequest } from './client-link.ts';

type AdvertisedDeps = { readonly shares: Shares; readonly clock: Clock };

/** The bytes that are counted for one client. */
type Advertiser = {
  readonly holdings: Holdings;
  /** The size in bytes of the metadata and the actions that the client last sent. */
  metadata: number;
  actions: number;
  /** The sizes of the contexts and windows that the client reported; null before its first report. */
  rows: ReportedRows | null;
  /** The number of the client's open links on this node. It is two for a moment while one link replaces another. */
  links: number;
  closedAt: number;
};

/**
 * Accounts for the share `advertised_bytes`: the metadata and actions of clients, and the contexts and windows that
 * they report. `open`, `advertise` and `report` claim the bytes before they call the store, throw `share_exceeded` or
 * `store_full` if there is no room, and count only what the store accepted. A new hello replaces the counted metadata
 * and actions; a hello of another instance also removes the contexts and windows. The bytes of a client are counted
 * until FORGET_MS after its last link on this node has closed.
 */
export class Advertised {
  readonly #deps: AdvertisedDeps;
  readonly #advertisers = new ByClient<Advertiser>();
  /** The clients without a link, in the order in which they lost their last link. */
  readonly #closed = new Map<Advertiser, ClientKey>();

  constructor(deps: AdvertisedDeps) {
    this.#deps = deps;
  }

  /** Registers a link. Each call that resolves must be followed by one call of `closed`, after the link has closed. */
  async open(
    client: ClientKey,
    hello: Pick<HelloRequest, 'metadata' | 'actions'>,
    connect: () => ConnectResult | Promise<ConnectResult>,
  ): Promise<ConnectResult> {
    this.#forget();
    const known = this.#advertisers.get(client);
    const holdings = known?.holdings ?? this.#deps.shares.of(client.userId);
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

  /**
   * Replaces the actions that a client advertises. `act` calls the store; it returns null if the store changed nothing.
   */
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

  /** Notes that a link of the client has closed. */
  closed(client: ClientKey): void {
    const advertiser = this.#advertisers.get(client);
    if (!advertiser || --advertiser.links > 0) return;
    advertiser.closedAt = this.#deps.clock.monotonic();
    this.#closed.set(advertiser, client);
  }

  #forget(): void {
    const due = this.#deps.clock.monotonic() - FORGET_MS;
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

/** Removes the sizes of a client's contexts and windows, and returns their sum in bytes. */
function rowsGone({ rows }: Advertiser): number {
  return rows?.clear() ?? 0;
}

/** Reserves `growth` bytes while `act` calls the store. Afterwards `counted` counts what the store accepted. */
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
 * The bytes in memory of one context or window without its texts: the object, its index entries and its fixed fields.
 * Close to what was measured for a context with empty texts.
 */
const ROW_BYTES = 512;
const ACTION_BYTES = 128;

function helloWeight({ metadata, actions }: Pick<HelloRequest, 'metadata' | 'actions'>) {
  return { metadata: metadata === null ? 0 : utf8Length(metadata), actions: actionsWeight(actions) };
}

function actionsWeight(actions: readonly ActionAdvertisement[]): number {
  return actions.reduce((sum, action) => sum + ACTION_BYTES + textsOf(action), 0);
}

/** The change in bytes that one report makes. Both methods compare the report with the rows at the time of the call. */
type RowsChange = { growth(): number; apply(): number };

/** The size in bytes of each context and window of one client. Has one entry for each row of the client. */
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

  /** Removes all rows, and returns the sum of their sizes in bytes. */
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
