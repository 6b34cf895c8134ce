/** Makes addresses of the relay and of pages from the address of this script: `<base>/console/assets/<name>.js`. */

// This is a separate statement, because the bundler would take `new URL(text, import.meta.url)` for a file to copy.
const script = import.meta.url;

/** The path of the console, with a slash at its end: `<base>/console/`. */
export const CONSOLE_PATH = new URL('../', script).pathname;

/** The base path of the relay without a slash at its end, as in the relay's setting BASE_PATH. */
export const RELAY_PATH = CONSOLE_PATH.replace(/\/console\/$/, '');

/** Returns the relay's base address, for commands that a person copies. */
export const relayUrl = (): string => `${location.origin}${RELAY_PATH}`;

/** Returns the URL path of a page of the console, from a path such as `clients/alice`. */
export const pagePath = (path: string): string => `${CONSOLE_PATH}${path}`;

/** Joins path segments, each percent-encoded. */
export const segments = (...parts: readonly string[]): string => parts.map(encodeURIComponent).join('/');

/** Returns the URL path of a page with these members in its query. */
export function queryPath(path: string, query: Readonly<Record<string, string>>): string {
  const members = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return pagePath(`${path}?${members.join('&')}`);
}

type ClientId = { readonly userId: string; readonly clientId: string };
type CommandId = ClientId & { readonly commandId: string };

export const clientHref = ({ userId, clientId }: ClientId): string => pagePath(`clients/${segments(userId, clientId)}`);
export const callHref = ({ userId, clientId, commandId }: CommandId): string =>
  pagePath(`calls/${segments(userId, clientId, commandId)}`);
export const userHref = (userId: string): string => pagePath(`users/${segments(userId)}`);
export const placeHref = ({ userId, clientId, contextId }: ClientId & { readonly contextId: string }): string =>
  pagePath(`places/${segments(userId, clientId, contextId)}`);
export const streamHref = (stream: string): string => queryPath('history', { stream });
export const nodesHref = (): string => pagePath('nodes');
