type Scope = 'connect' | 'invoke' | 'host';

/** A relay as the demo's parts know it: by its address and with credentials, as anybody outside would. */
export type Relay = {
  /** The base address. */
  readonly url: string;
  readonly adminToken: string;
  /** A fresh token of this user, that may connect and invoke unless other scopes are given. */
  token(userId: string, scopes?: readonly Scope[]): Promise<string>;
};

/** Where clients connect. */
export function connectUrl(relayUrl: string): string {
  return `${relayUrl.replace(/^http/, 'ws')}/connect`;
}
