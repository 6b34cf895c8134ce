/** Checks the options of all client libraries, and says what helps when a connection fails. */

/** Throws TypeError, with the address that was probably meant, unless `url` is the address of a link. */
export function checkLinkUrl(url: unknown): void {
  const { protocol = '', host, pathname = '' } = partsOf(url);
  if (/^wss?:$/.test(protocol) && pathname.endsWith('/connect')) return;
  const meant = host && `${protocol.replace('http', 'ws')}//${host}${pathname.replace(/\/+$/, '')}/connect`;
  throw wrongUrl(url, meant || 'ws://127.0.0.1:4400/connect');
}

/** Throws TypeError, with the address that was probably meant, unless `url` is the base address of a relay. */
export function checkBaseUrl(url: unknown): void {
  const { protocol = '', host, pathname = '' } = partsOf(url);
  const path = pathname.replace(/\/(connect|graphql)?\/*$/, '');
  if (/^https?:$/.test(protocol) && path === pathname.replace(/\/+$/, '')) return;
  throw wrongUrl(url, host ? `${protocol.replace('ws', 'http')}//${host}${path}` : 'http://127.0.0.1:4400');
}

/** Returns the parts of an absolute URL of HTTP or of a WebSocket; nothing for any other value. */
function partsOf(url: unknown): Partial<URL> {
  const text = String(url);
  return /^(ws|http)s?:\/\/[^/]/i.test(text) && URL.canParse(text) ? new URL(text) : {};
}

function wrongUrl(url: unknown, meant: string): TypeError {
  return new TypeError(`url: ${shown(url)} given, an address such as ${meant} expected`);
}

/** Throws TypeError unless `token` is a token or a function. */
export function checkToken(token: unknown): void {
  if (typeof token === 'function' || (typeof token === 'string' && /^\S+$/.test(token))) return;
  const given = typeof token === 'string' && token !== '' ? 'one with white space' : shown(token);
  const hint = token ? 'write it without "Bearer"' : 'is its environment variable set?';
  throw new TypeError(`token: ${given} given, a string or a function that returns one expected: ${hint}`);
}

/** Throws TypeError if one of the named options is present and no function. */
export function checkCallbacks<T extends object>(options: T, names: readonly (keyof T & string)[]): void {
  for (const name of names) {
    const given = options[name];
    if (given !== undefined && typeof given !== 'function')
      throw new TypeError(`${name}: ${shown(given)} given, a function expected`);
  }
}

/** Returns a short text that tells what a value is. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' && value !== null
    ? 'an object'
    : (JSON.stringify(value)?.slice(0, 100) ?? 'nothing');
}

// What helps when a connection fails.

/** What a person does about the end of a link, by its reason. */
const HELP: Readonly<Record<string, string | undefined>> = {
  unauthenticated:
    'The relay refused the token. Use a new one, or a function that returns one: tokens expire, and those of a trial end with its relay.',
  forbidden:
    'The token is not for this link. A client needs a token of a user with the scope "connect", a caller the scope "invoke".',
  replaced: 'Another program of this user connected with this clientId. Give each program a clientId of its own.',
  protocol_error: 'The relay does not understand this library. Use the same version of both.',
  token_failed: 'The token function gave no token.',
};

/** The end of a link. `said`: what the relay, or the token function, said about it; null if nothing. */
type LinkDown = {
  readonly url: string;
  readonly reason: string;
  readonly said: string | null;
  /** Whether the relay had accepted the link. */
  readonly accepted: boolean;
};

/** Returns why a link is down, and what helps. */
export function linkAdvice({ url, reason, said, accepted }: LinkDown): string {
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url);
  return `${HELP[reason] ?? other}${said === null ? '' : ` (${said})`}`;
}

/** Returns the advice for a relay that does not answer. */
export function unreachable(url: string): string {
  const origin = 'document' in globalThis ? " Does its ALLOWED_ORIGINS name this page's origin?" : '';
  return `No relay answers at ${url}. Does it run, and are host, port and path right?${origin}`;
}

/** Tells a person what the program does not listen to. */
export function warn(who: string, message: string): void {
  console.warn(`callboard: ${who}: ${message}`);
}
