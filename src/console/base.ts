/**
 * Finds the addresses of the console and its relay from the address of this script: `<base>/console/assets/<name>.js`.
 */

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
