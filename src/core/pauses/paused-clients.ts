/** Tracks the deployment's pauses in memory, so that a node can tell each client that all its calls are paused. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { ClientKey } from '../ids.ts';
import { promised, thenDo } from '../maybe-promise.ts';
import type { Cancel } from '../ports.ts';
import { holds, PauseSet, type Pause } from './pause.ts';

/** How soon the pauses are read again after a part of the store did not answer, in milliseconds. */
const AGAIN_MS = 5_000;
/**
 * While pauses are known, they are read again after this time, in milliseconds, because a node may have ended one and
 * died before it told the others. Without pauses they are not read again, because each reading asks all owners.
 */
const REREAD_MS = 30_000;

type Concerns = (client: ClientKey) => boolean;

/** Says which clients are paused completely. It decides about no call; the store does that. */
export class PausedClients {
  readonly #deps: Pick<Deps, 'backend' | 'clock' | 'log'>;
  readonly #listeners = new Set<(concerns: Concerns) => void>();
  #pauses = new PauseSet();
  #changes = 0;
  #isReading = false;
  #cancelAgain: Cancel = () => {};

  constructor(deps: Pick<Deps, 'backend' | 'clock' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Returns a pause that covers all calls of a client; if there are several, the one that ends last. Null if none is
   * known.
   */
  of(client: ClientKey): Pause | null {
    if (this.#pauses.size === 0) return null;
    const now = this.#deps.clock.now();
    const found = [...this.#pauses.ofUser(null), ...this.#pauses.ofUser(client.userId)]
      .filter((pause) => holds(pause, now) && coversAll(pause) && concerns(pause)(client))
      .sort((a, b) => (b.until ?? Infinity) - (a.until ?? Infinity) || 0);
    return found[0] ?? null;
  }

  /** Calls `run` when the result of `of` may have changed for the clients that `concerns` accepts. */
  onChange(run: (concerns: Concerns) => void): Cancel {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  start(): Cancel {
    const reread = (): void => this.#read();
    const unsubscribe = this.#deps.backend.bus.subscribe(
      'pauses',
      ({ change, pause }) => {
        this.#changes++;
        if (change !== 'paused') this.#pauses.end(pause.pauseId);
        else if (!this.#pauses.hasEnded(pause.pauseId)) {
          if (this.#pauses.size === 0) this.#readLater(REREAD_MS);
          this.#pauses.put(pause);
        }
        if (coversAll(pause)) this.#tell(concerns(pause));
      },
      // Events may have been lost, so the pauses are read again.
      reread,
    );
    reread();
    return () => {
      unsubscribe();
      this.#cancelAgain();
    };
  }

  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const before = this.#changes;
    let isStale = false;
    promised(() =>
      thenDo(this.#deps.backend.pauses.list(null), ({ rows, gaps = [] }) => {
        isStale = before !== this.#changes;
        // If a part did not answer, this reading is incomplete and is not used. The known pauses stay until the next
        // reading.
        if (gaps.length > 0) this.#readLater(AGAIN_MS);
        if (gaps.length > 0 || isStale) return;
        const [known, wasEmpty] = [this.#pauses, this.#pauses.size === 0];
        this.#pauses = new PauseSet();
        for (const id of known.ended()) this.#pauses.end(id);
        for (const row of rows) if (!known.hasEnded(row.pauseId)) this.#pauses.put(row);
        if (this.#pauses.size > 0) this.#readLater(REREAD_MS);
        if (!wasEmpty || rows.length > 0) this.#tell(() => true);
      }),
    )
      .catch((error: unknown) => {
        this.#readLater(AGAIN_MS);
        if (!isStoreUnavailable(error)) this.#deps.log.warn({ err: error }, 'pauses could not be read');
      })
      .finally(() => {
        this.#isReading = false;
        if (isStale) this.#read();
      });
  }

  /**
   * Schedules the next reading, and cancels the one that was scheduled before. A store in this process loses no events,
   * so nothing is scheduled.
   */
  #readLater(ms: number): void {
    this.#cancelAgain();
    this.#cancelAgain = this.#deps.backend.capabilities.shared
      ? this.#deps.clock.after(ms, () => this.#read())
      : () => {};
  }

  #tell(concerned: Concerns): void {
    for (const run of this.#listeners) run(concerned);
  }
}

/** Whether a pause covers all calls of its clients, whoever makes them. */
function coversAll({ callerKind, caller, action, label }: Pause): boolean {
  return callerKind === null && label === null && [caller, action].every((one) => one === null || one === '*');
}

function concerns({ userId, clientId }: Pause): Concerns {
  return (client) =>
    (userId === null || userId === client.userId) && (clientId === null || clientId === client.clientId);
}
