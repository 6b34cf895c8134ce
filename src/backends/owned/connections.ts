/** The connections that the owners of their clients told this process of. An admission relies on them without a read. */
import type { AdmitRequest, SeenLink } from '../../core/commands/command-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { revisionOf } from '../../core/connections/revision.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';

/** The most characters that all of them take, and one. A client that advertises more is read each time. */
const ALL_CHARS = 16 * 1024 * 1024;
const ONE_CHARS = 64 * 1024;
/** What a connection takes besides its texts. */
const BASE_CHARS = 512;

type Seen = { readonly connection: Connection; readonly chars: number };

/** Keeps the newest ones. */
export class SeenConnections {
  readonly #sha256: (text: string) => string;
  readonly #seen = new Map<string, Seen>();
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

  /** Returns the request as another process can be given it: with what an owner compares of the connection. */
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
