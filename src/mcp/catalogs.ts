/** The catalogs of the users whose agents have asked lately. A catalog follows the clients of its user. */
import { connectionStatus, type Connection } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import { AGENT_CATALOG_MS } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Cancel } from '../core/ports.ts';
import { Catalog, type Advertiser } from './catalog.ts';
import type { Turn } from './turn.ts';

type Kept = {
  readonly catalog: Catalog;
  /** The rows that were read last. */
  rows: readonly Advertiser[];
  /** The update that is running; null: none. */
  running: Promise<void> | null;
  /** The update that begins when the running one is over; null: none was asked for. */
  next: Promise<void> | null;
  usedAt: number;
  cancel: Cancel;
};

/** Keeps the catalog of each user for AGENT_CATALOG_MS after its last use. */
export class Catalogs {
  readonly #core: Core;
  readonly #reserved: ReadonlySet<string>;
  readonly #kept = new Map<string, Kept>();

  /** `reserved`: the names of tools that no action has. */
  constructor(core: Core, reserved: ReadonlySet<string>) {
    this.#core = core;
    this.#reserved = reserved;
  }

  /**
   * Returns the user's catalog, brought up to date with these rows of its clients. A client that was lost counts until
   * its row is forgotten, a minute later.
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

  /** Waits until an update has ended that began after this call. Requests that wait share one update. */
  async #updated(kept: Kept, turn: Turn): Promise<Catalog> {
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

  #begin(userId: string): Kept {
    const { clock, shares } = this.#core;
    const catalog = new Catalog(shares.of(userId), this.#reserved);
    const usedAt = clock.monotonic();
    const kept: Kept = { catalog, rows: [], running: null, next: null, usedAt, cancel: () => {} };
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

async function update({ catalog, rows }: Kept, turn: Turn): Promise<void> {
  if (catalog.isOf(rows)) return;
  const steps = catalog.update(rows);
  try {
    while ((await turn(() => steps.next().done)) !== true);
  } finally {
    steps.return();
  }
}
