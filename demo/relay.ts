/** Where the relay of the demo is, and with which tokens its clients reach it. */

type Scope = 'connect' | 'invoke' | 'host';

/** The relay as the parts of the demo use it: an address and credentials, as for any outside program. */
export type Relay = {
  /** The base address. */
  readonly url: string;
  readonly adminToken: string;
  /** Returns a new token of this user. Default scopes: `connect` and `invoke`. */
  token(userId: string, scopes?: readonly Scope[]): Promise<string>;
};

/** Returns the WebSocket URL for clients. */
export function connectUrl(relayUrl: string): string {
  return `${relayUrl.replace(/^http/, 'ws')}/connect`;
}
