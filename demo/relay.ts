/** Defines how the parts of the demo reach the relay: its address, and tokens for its users. */

type Scope = 'connect' | 'invoke' | 'host';

/** The relay for the parts of the demo: an address and credentials, as an outside program would have them. */
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
