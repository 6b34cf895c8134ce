/** Which tokens the links of a simulation use, as the frames of their programs and relays show it. */
import { isRecord } from '../../src/core/json.ts';
import { FRAME_SEPARATOR } from '../../src/protocol/frame-codec.ts';
import type { HeldToken } from './held-tokens.ts';
import type { Connection } from './link-network.ts';
import type { Use } from './revocation-ledger.ts';

/** `tokens`: the one in use, and one that the program has sent and that is not answered. `since`: when hello came. */
type TokenLink = { readonly clientId: string | null; tokens: readonly HeldToken[]; readonly since: number };

export class TokenLinks {
  readonly #links = new Map<Connection, TokenLink>();
  readonly #byText: (text: string) => HeldToken | undefined;

  constructor(byText: (text: string) => HeldToken | undefined) {
    this.#byText = byText;
  }

  /** The links whose ends both believe in them, and whose hello came before this time. */
  openSince(at: number): readonly (readonly Use[])[] {
    return [...this.#links].flatMap(([{ isOpen }, link]) => (isOpen && link.since <= at ? [usesOf(link)] : []));
  }

  usesOf(connection: Connection): readonly Use[] {
    const link = this.#links.get(connection);
    return link ? usesOf(link) : [];
  }

  /** A relay has received a message. */
  received(text: string, connection: Connection, now: number): void {
    for (const frame of text.split(FRAME_SEPARATOR)) this.#frameReceived(headerOf(frame), connection, now);
  }

  /** A relay has written a frame. Call it when the frame has been judged. */
  written(type: unknown, connection: Connection): void {
    const link = this.#links.get(connection);
    if (link && type === 'renewed') link.tokens = link.tokens.slice(-1);
    if (type === 'bye') this.#links.delete(connection);
  }

  #frameReceived(frame: ReturnType<typeof headerOf>, connection: Connection, since: number): void {
    const token = this.#byText(String(frame?.['token']));
    if (!token) return;
    const known = this.#links.get(connection);
    const clientId = typeof frame?.['client_id'] === 'string' ? frame['client_id'] : null;
    if (known) known.tokens = [...known.tokens, token];
    else this.#links.set(connection, { clientId, tokens: [token], since });
  }
}

/** The header of a frame; null if it is none. */
export function headerOf(text: string): Readonly<Record<string, unknown>> | null {
  const header: unknown = JSON.parse(text.split('\n', 1)[0] ?? '');
  return isRecord(header) ? header : null;
}

function usesOf({ tokens, clientId }: TokenLink): readonly Use[] {
  return tokens.map((token) => ({ token, clientId }));
}
