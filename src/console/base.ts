/**
 * Builds URLs of the relay and of the console's pages from the URL of this script: `<base>/console/assets/<name>.js`.
 */

// A separate statement, because the bundler treats `new URL(text, import.meta.url)` as a file to copy.
const script = import.meta.url;

/** The path of the console, with a trailing slash: `<base>/console/`. */
export const CONSOLE_PATH = new URL('../', script).pathname;

/** The base path of the relay without a trailing slash, as in the relay's setting BASE_PATH. */
export const RELAY_PATH = CONSOLE_PATH.replace(/\/console\/$/, '');

/** Returns the relay's base URL, for commands that a person copies. */
export const relayUrl = (): string => `${location.origin}${RELAY_PATH}`;

/** Returns the URL path of a page of the console. `path`: for example, `clients/alice`. */
export const pagePath = (path: string): string => `${CONSOLE_PATH}${path}`;

/** Percent-encodes path segments and joins them with slashes. */
export const segments = (...parts: readonly string[]): string => parts.map(encodeURIComponent).join('/');

/** Returns the URL path of a page with these parameters in its query. */
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
