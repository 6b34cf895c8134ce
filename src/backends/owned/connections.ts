/** A cache of connections that other processes have sent, so that an admission needs no read of the connection. */
import type { AdmitRequest, SeenLink } from '../../core/commands/command-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { revisionOf } from '../../core/connections/revision.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';

/**
 * The limits of the cache, in characters: of all connections together, and of one. A client that advertises more is not
 * cached, so its connection is read each time.
 */
const ALL_CHARS = 16 * 1024 * 1024;
const ONE_CHARS = 64 * 1024;
/** The characters that a connection counts besides its texts. */
const BASE_CHARS = 512;

type CachedConnection = { readonly connection: Connection; readonly chars: number };

/** The cache. It keeps the newest connections. */
export class SeenConnections {
  readonly #sha256: (text: string) => string;
  readonly #seen = new Map<string, CachedConnection>();
  #chars = 0;

  constructor(sha256: (text: string) => string) {
    this.#sha256 = sha256;
  }

  note(connection: Connection): void {
    const key = clientKeyText(connection);
    this.#forget(key);
    const chars = charsOf(connection);
    if (chars > ONE_CHARS || connection.disconnectedAt !== null) return;
    this.#seen.set(key, { connection, chars });
    this.#chars += chars;
    for (const oldest of this.#seen.keys()) {
      if (this.#chars <= ALL_CHARS) break;
      this.#forget(oldest);
    }
  }

  last(key: ClientKey): Connection | null {
    return this.#seen.get(clientKeyText(key))?.connection ?? null;
  }

  /**
   * Returns the request in the form that is sent to another process. Instead of the whole connection, it contains only
   * the values that the owner compares.
   */
  sent({ seen = null, ...request }: AdmitRequest): AdmitRequest {
    return { ...request, seenLink: seen && this.#linkOf(seen) };
  }

  #linkOf({ instanceId, epoch, actions }: Connection): SeenLink {
    return { instanceId, epoch, revision: revisionOf(actions, this.#sha256) };
  }

  #forget(key: string): void {
    this.#chars -= this.#seen.get(key)?.chars ?? 0;
    this.#seen.delete(key);
  }
}

function charsOf({ actions, metadata }: Connection): number {
  let chars = BASE_CHARS + (metadata?.length ?? 0);
  for (const { name, summary, description, schema, metadata: more } of actions)
    chars += name.length + textsOf(summary, description, schema, more);
  return chars;
}

function textsOf(...texts: readonly (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
