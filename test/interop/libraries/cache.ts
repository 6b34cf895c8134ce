/**
 * Defines the interface that the tests need of a client library with a cache, so that each test runs with every
 * library.
 */

/** The variables of a GraphQL operation, by name. */
export type Variables = Readonly<Record<string, unknown>>;
export type Answer = Readonly<Record<string, any>>;

/** A query that is answered from the cache, and answered again when the cache changes. */
export type Watch = Disposable & {
  /** Returns the latest complete answer; null before the first one. */
  current(): Answer | null;
  /** Loads the next page. Some libraries need a call for that. */
  more(variables: Variables): Promise<void>;
};

export type CachingClient = Disposable & {
  /** Reads from the cache, and from the relay what the cache lacks. */
  watch(query: string, variables?: Variables): Watch;
  /** Reads from the relay, and puts the answer into the cache. Rejects with the code of the first error. */
  load(query: string, variables?: Variables): Promise<Answer>;
  mutate(mutation: string, variables?: Variables): Promise<Answer>;
  /** Subscribes. Resolves once the relay sends events. Disposing ends the subscription. */
  follow(subscription: string, variables?: Variables): Follow;
};

export type Follow = Disposable & {
  /** The events that arrived so far. */
  readonly events: readonly Answer[];
};

export class CodedError extends Error {
  readonly code: unknown;

  constructor(message: string, code: unknown) {
    super(message);
    this.code = code;
  }
}
