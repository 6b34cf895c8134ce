/** The types through which the gateway and its links use each other. Contains no code. */
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import { BoundedMap } from '../core/bounded-map.ts';
import type { ActionAdvertisement, ClientType } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import type { JsonText } from '../core/json.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import type { ByteRates } from '../core/shares/turns.ts';
import type { CloseReason } from '../protocol/codes.ts';
import type { TurnEnd } from './socket.ts';

/** Who is at the other end of a link: a client of this type, or a caller. */
export type LinkPeer = ClientType | 'caller';

/** An open link, as the gateway uses it. */
export interface OpenLink {
  /** Who is at the other end; null before `welcome`. */
  readonly peer: LinkPeer | null;
  /** Sends `bye` and closes. */
  close(reason: CloseReason): void;
  /** Called once per gateway beat (BEAT_MS). */
  onBeat(): void;
}

/** The dependencies that all links of a gateway share. */
export type GatewayParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly turnEnd: TurnEnd;
  /** The number of the current beat; it grows by one every BEAT_MS. */
  readonly beat: () => number;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  /** The lists of actions that clients advertised most recently. */
  readonly actionLists: ActionLists;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome: (socket: Duplex, principal: Principal) => void;
  /**
   * Called once for each link, when its socket is gone and core has recorded its end. All links share one function, so
   * no link holds a promise of its own.
   */
  readonly onDone: (link: OpenLink) => void;
};

// Keeps the lists of actions that clients advertised most recently, so that equal lists are one object.

/** The greatest number of lists that are kept. Each version of each application that connects needs one. */
const LISTS = 64;
/**
 * The greatest length of a payload whose list is kept, in characters. The text of a list may be a slice of its payload,
 * which then stays in memory too. All kept payloads together have at most 4 Mi characters.
 */
const PAYLOAD_CHARS = 65_536;

type Parsed = {
  readonly payload: string;
  readonly parse: (json: JsonText) => readonly ActionAdvertisement[];
};

/**
 * Remembers parsed lists of actions by their JSON text. All tabs of an application advertise the same list: they share
 * one parsed object, and a list that is known is not parsed again when the tabs reconnect.
 */
export class ActionLists {
  readonly #lists = new BoundedMap<string, readonly ActionAdvertisement[]>({ most: LISTS, order: 'used' });

  /**
   * Returns the list for this text, which is part of `payload`. Calls `parse` if the list is not remembered. If `parse`
   * throws, nothing is remembered.
   */
  get(json: JsonText, { payload, parse }: Parsed): readonly ActionAdvertisement[] {
    if (payload.length > PAYLOAD_CHARS) return parse(json);
    const known = this.#lists.get(json);
    if (known) return known;
    const list = parse(json);
    this.#lists.set(json, list);
    return list;
  }

  get size(): number {
    return this.#lists.size;
  }
}
