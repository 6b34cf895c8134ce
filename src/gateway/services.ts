/** The services of the relay that the links of a gateway use (types only). */
import type { Authenticator } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { Log } from '../core/ports.ts';
import type { ByteRates } from '../core/shares/turns.ts';
import type { UpFrame } from '../protocol/frames.ts';
import type { WriterOptions } from './socket.ts';
import type { ActionLists } from './payloads.ts';

export type HelloFrame = Extract<UpFrame, { type: 'hello' }>;

/** The services that the routers of all links share. */
export type RouterServices = WriterOptions & {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  /** The interval of pings, in milliseconds. */
  readonly pingMs: number;
  /** The cache of the lists of actions that clients advertised most recently. */
  readonly actionLists: ActionLists;
};
