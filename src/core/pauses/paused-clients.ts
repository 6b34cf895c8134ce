/** Knows the pauses of the deployment in the memory of a node, so that each client learns that it is paused as a whole. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { ClientKey } from '../ids.ts';
import { promised, thenDo } from '../maybe-promise.ts';
import type { Cancel } from '../ports.ts';
import { holds, PauseSet, type Pause } from './pause.ts';

/** How soon the pauses are read again if a part of the store did not answer, in milliseconds. */
const AGAIN_MS = 5_000;
/**
 * How often they are read again while some are known, in milliseconds: a node that dies may have ended one and told nobody.
 * Not at other times, because each node asks all owners.
 */
const REREAD_MS = 30_000;

type Concerns = (client: ClientKey) => boolean;

/** What a node tells its clients of pauses. It decides about no call: the store does. */
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

  /** Returns the pause that covers all calls of a client, of several the one that ends last; null: none is known. */
  of(client: ClientKey): Pause | null {
    if (this.#pauses.size === 0) return null;
    const now = this.#deps.clock.now();
    const found = [...this.#pauses.ofUser(null), ...this.#pauses.ofUser(client.userId)]
      .filter((pause) => holds(pause, now) && coversAll(pause) && concerns(pause)(client))
      .sort((a, b) => (b.until ?? Infinity) - (a.until ?? Infinity) || 0);
    return found[0] ?? null;
  }

  /** Calls `run` when `of` may answer something else for the clients whom `concerns` accepts. */
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
      // Events may be missing.
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
        // What a part of the store has that did not answer is known from events, or from a later reading.
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

  /** Plans the next reading, in place of one that is planned. In a store of this process no event is lost. */
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

/** Whether a pause covers every call of the clients that it covers. */
function coversAll({ callerKind, caller, action, label }: Pause): boolean {
  return callerKind === null && label === null && [caller, action].every((one) => one === null || one === '*');
}

function concerns({ userId, clientId }: Pause): Concerns {
  return (client) =>
    (userId === null || userId === client.userId) && (clientId === null || clientId === client.clientId);
}
