import { ByClient } from '../by-client.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { LazyMap, LazySet } from '../lazy.ts';
import { LEAVING_LINKS } from '../limits.ts';
import type { Binding, DispatchResult } from './commands.ts';
import type { ClientLink } from './link.ts';

/** A dispatch that its link has not been told of yet. */
export type Held = {
  readonly key: CommandKey;
  readonly result: Extract<DispatchResult, { kind: 'dispatch' }>;
  readonly at: number;
  /** Asked for meanwhile. */
  cancel: { readonly reason: string | null } | null;
};

/** Resolves `wake` as soon as `over` holds. */
export type OutletWait = { readonly over: (outlet: Outlet) => boolean; readonly wake: () => void };

/** One link's queue and window on this node. */
export type Outlet = {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /** Queued commands in the order admitted, by their ids; a Map, so that a row seen twice stands once. */
  readonly queue: LazyMap<string, CommandKey>;
  /** Ids of those dispatched, or being dispatched, and not ended. */
  readonly window: LazySet<string>;
  /** False until the client was welcomed. */
  open: boolean;
  /** True: nothing more is dispatched on it, and what is queued waits for the client's next link. */
  quiet: boolean;
  /** Dispatched, and not written yet: the socket was behind when the store answered. In the order dispatched; made with the first one. */
  held: Map<string, Held> | null;
  /** Dispatches that the store has not answered yet. */
  asked: number;
  /** Those of them for which it was away: until it has answered, none is begun, so that the order holds. */
  unanswered: number;
  readonly waits: OutletWait[];
};

export function createOutlet(client: ClientKey, binding: Binding, link: ClientLink): Outlet {
  const own = { queue: new LazyMap<string, CommandKey>(), window: new LazySet<string>(), waits: [] };
  return { client, binding, link, ...own, open: false, quiet: false, held: null, asked: 0, unanswered: 0 };
}

/** Whether it has commands to see to the end of: those in flight, and, unless it is quiet, those queued. */
export function isBusy({ quiet, queue, window }: Outlet): boolean {
  return window.size > 0 || (!quiet && queue.size > 0);
}

export function isHolding({ held }: Outlet): boolean {
  return held !== null && held.size > 0;
}

/** Whether the store has answered every dispatch that was begun. */
export function isAnswered({ asked }: Outlet): boolean {
  return asked === 0;
}

/** Resolves once `over` holds for the link, or all its waits are ended. */
export function waitFor(outlet: Outlet, over: OutletWait['over']): Promise<void> {
  return new Promise((wake) => {
    outlet.waits.push({ over, wake });
    settleWaits(outlet);
  });
}

export function settleWaits(outlet: Outlet): void {
  const { waits } = outlet;
  if (waits.length === 0) return;
  for (const wait of waits.splice(0)) {
    if (wait.over(outlet)) wait.wake();
    else waits.push(wait);
  }
}

/**
 * The links of clients on this node. Of each client at most one is bound: it is what the client's commands are dispatched on. A leaving link
 * is bound no more, but some of its commands still run: it is kept until its socket is gone.
 */
export class Outlets {
  readonly #bound = new ByClient<Outlet>();
  readonly #leaving = new ByClient<readonly Outlet[]>();

  /** Returns the link that was bound, or else a leaving link of the same instance: the new link takes its place. */
  bind(outlet: Outlet): Outlet | undefined {
    const { client, binding } = outlet;
    const sameInstance = (other: Outlet): boolean => other.binding.instanceId === binding.instanceId;
    const previous = this.#bound.get(client) ?? this.leaving(client).find(sameInstance);
    this.#bound.set(client, outlet);
    return previous;
  }

  /** The bound link becomes a leaving one. Any other link stays as it is. Returns the leaving link that is one too many, which is to be closed. */
  retire(outlet: Outlet): Outlet | undefined {
    const { client } = outlet;
    if (this.find(client) !== outlet) return undefined;
    this.#bound.delete(client);
    const leaving = [...this.leaving(client), outlet];
    this.#leaving.set(client, leaving);
    return leaving.length > LEAVING_LINKS ? leaving[0] : undefined;
  }

  remove(outlet: Outlet): void {
    const { client } = outlet;
    if (this.find(client) === outlet) this.#bound.delete(client);
    const left = this.leaving(client).filter((other) => other !== outlet);
    if (left.length > 0) this.#leaving.set(client, left);
    else this.#leaving.delete(client);
  }

  /** The bound link of this client. */
  find(client: ClientKey): Outlet | undefined {
    return this.#bound.get(client);
  }

  leaving(client: ClientKey): readonly Outlet[] {
    return this.#leaving.size === 0 ? NONE : (this.#leaving.get(client) ?? NONE);
  }

  /** The link that this command was dispatched on, or is being dispatched on. */
  runningOn(key: CommandKey): Outlet | undefined {
    const runsIt = ({ window }: Outlet): boolean => window.has(key.commandId);
    const bound = this.find(key);
    return bound && runsIt(bound) ? bound : this.leaving(key).find(runsIt);
  }

  /** Whether it is one of these, bound or leaving. */
  has(outlet: Outlet): boolean {
    return this.find(outlet.client) === outlet || this.leaving(outlet.client).includes(outlet);
  }

  get size(): number {
    let leaving = 0;
    for (const outlets of this.#leaving.values()) leaving += outlets.length;
    return this.#bound.size + leaving;
  }

  /** All, bound and leaving. */
  *values(): Generator<Outlet> {
    yield* this.#bound.values();
    for (const outlets of this.#leaving.values()) yield* outlets;
  }
}

const NONE: readonly Outlet[] = [];
