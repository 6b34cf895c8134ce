/**
 * Keeps the catalogs of the users whose agents sent a request recently, and updates them when the users' clients
 * change.
 */
import { connectionStatus, type Connection } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import { AGENT_CATALOG_MS } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Cancel } from '../core/ports.ts';
import { Catalog, type Advertiser } from './catalog.ts';
import type { Turn } from './turn.ts';

type CachedCatalog = {
  readonly catalog: Catalog;
  /** The rows of clients that were read last. */
  rows: readonly Advertiser[];
  /** The update that is running; null if there is none. */
  running: Promise<void> | null;
  /** The update that will begin when the running one has ended; null if none was requested. */
  next: Promise<void> | null;
  usedAt: number;
  cancel: Cancel;
};

/** Keeps the catalog of each user for AGENT_CATALOG_MS after its last use. */
export class Catalogs {
  readonly #core: Core;
  readonly #reserved: ReadonlySet<string>;
  readonly #kept = new Map<string, CachedCatalog>();

  /** `reserved`: the names of built-in tools, which no action's tool may have. */
  constructor(core: Core, reserved: ReadonlySet<string>) {
    this.#core = core;
    this.#reserved = reserved;
  }

  /**
   * Returns the user's catalog, updated from these rows of its clients. A client that disconnected counts until its row
   * is forgotten, a minute later.
   */
  of(userId: string, rows: readonly Connection[], turn: Turn): MaybePromise<Catalog> {
    const now = this.#core.clock.now();
    const kept = this.#kept.get(userId) ?? this.#begin(userId);
    kept.usedAt = this.#core.clock.monotonic();
    kept.rows = rows.map(({ clientId, clientType, connectedAt, actions, ...row }) => ({
      clientId,
      clientType,
      connectedAt,
      actions,
      live: connectionStatus(row, now) !== 'disconnected',
    }));
    if (kept.running === null && kept.catalog.isOf(kept.rows)) return kept.catalog;
    return this.#updated(kept, turn);
  }

  close(): void {
    for (const { cancel, catalog } of this.#kept.values()) {
      cancel();
      catalog.close();
    }
    this.#kept.clear();
  }

  /** Waits for an update that begins after this call. All requests that wait share one update. */
  async #updated(kept: CachedCatalog, turn: Turn): Promise<Catalog> {
    const after = kept.running;
    kept.next ??= (async () => {
      await after?.catch(() => {});
      kept.running = kept.next;
      kept.next = null;
      try {
        await update(kept, turn);
      } finally {
        kept.running = null;
      }
    })();
    await kept.next;
    return kept.catalog;
  }

  #begin(userId: string): CachedCatalog {
    const { clock, shares } = this.#core;
    const catalog = new Catalog(shares.of(userId), this.#reserved);
    const usedAt = clock.monotonic();
    const kept: CachedCatalog = { catalog, rows: [], running: null, next: null, usedAt, cancel: () => {} };
    const check = (): void => {
      const left = kept.usedAt + AGENT_CATALOG_MS - clock.monotonic();
      if (left > 0 || kept.running !== null) return void (kept.cancel = clock.after(Math.max(left, 1), check));
      this.#kept.delete(userId);
      catalog.close();
    };
    kept.cancel = clock.after(AGENT_CATALOG_MS, check);
    this.#kept.set(userId, kept);
    return kept;
  }
}

async function update({ catalog, rows }: CachedCatalog, turn: Turn): Promise<void> {
  if (catalog.isOf(rows)) return;
  const steps = catalog.update(rows);
  try {
    while ((await turn(() => steps.next().done)) !== true);
  } finally {
    steps.return();
  }
}
