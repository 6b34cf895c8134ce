import type { Cancel } from './clock.ts';
import type { Connection, DisconnectCause } from './connections/connection.ts';
import type { CommandKey } from './ids.ts';
import type { JsonText } from './json.ts';
import type { SiteEvent } from './sites/site.ts';

export type ConnectionChange = 'connected' | 'resumed' | 'replaced' | 'stale' | 'disconnected' | 'actions_changed';
export type ConnectionEvent = {
  readonly change: ConnectionChange;
  readonly connection: Connection;
  readonly cause: DisconnectCause | null;
  readonly at: number;
};
/** A hint that a command moved, with its latest progress where that is what moved. Whoever watches reads the record again. */
export type CommandHint = { readonly key: CommandKey; readonly progress: JsonText | null };

/** What is published under each topic. */
export type Topics = {
  connections: ConnectionEvent;
  [command: `command:${string}`]: CommandHint;
  /** Of one site, by `siteKeyText`. */
  [site: `site:${string}`]: SiteEvent;
  /** A hint that a session or a grant of it ended. Whoever watches reads the session again. */
  [session: `session:${string}`]: null;
  /** By the digest of a ticket: the place in order of a stream that was opened with it. Streams opened before it end. */
  [ticket: `ticket:${string}`]: string;
};

/**
 * Live fan-out: at most once, in the order published by one node, no replay. A listener that throws harms no other. Publishing to a topic
 * that nobody listens to costs a look-up.
 */
export interface Bus {
  /** False: nobody can hear any topic of this kind now, so that publishing one may be left out. */
  hears(kind: 'command'): boolean;
  publish<T extends keyof Topics & string>(topic: T, event: Topics[T]): void;
  subscribe<T extends keyof Topics & string>(topic: T, listener: (event: Topics[T]) => void): Cancel;
}
