/** Checks the options of all client libraries, and says, also on the console, what helps when a connection fails. */

/** Throws TypeError, with the address that was probably meant, unless `url` can be the address of a link. */
export function checkLinkUrl(url: unknown): void {
  const { protocol = '', host, pathname = '' } = partsOf(url);
  // Another path is accepted, because a proxy may map it to the relay's /connect.
  if (/^wss?:$/.test(protocol) && pathname !== '/') return;
  const meant = host && `${protocol.replace('http', 'ws')}//${host}${pathname.replace(/(\/connect)?\/*$/, '/connect')}`;
  throw wrong('url', url, `an address such as ${meant || 'ws://127.0.0.1:4400/connect'}`);
}

/** Throws TypeError, with the address that was probably meant, unless `url` is the base address of a relay. */
export function checkBaseUrl(url: unknown): void {
  const { protocol = '', host, pathname = '' } = partsOf(url);
  const path = pathname.replace(/\/(connect|graphql)?\/*$/, '');
  if (/^https?:$/.test(protocol) && path === pathname.replace(/\/+$/, '')) return;
  const meant = host ? `${protocol.replace('ws', 'http')}//${host}${path}` : 'http://127.0.0.1:4400';
  throw wrong('url', url, `an address such as ${meant}`);
}

/** Returns the parts of an absolute URL of HTTP or of a WebSocket; none for any other value. */
function partsOf(url: unknown): Partial<URL> {
  return /^(ws|http)s?:\/\/[^/]/i.test(String(url)) ? new URL(String(url)) : {};
}

/** Throws TypeError unless `token` is a token or a function. */
export function checkToken(token: unknown): void {
  if (typeof token === 'function' || (typeof token === 'string' && /^\S+$/.test(token))) return;
  const hint = token ? 'without "Bearer"' : 'is its environment variable set?';
  // A token is a secret, so it is not shown.
  throw wrong('token', typeof token, 'a token or a function that returns one', `: ${hint}`);
}

/** Throws TypeError if one of the named options is present and is not a function. */
export function checkCallbacks<T extends object>(options: T, names: readonly (keyof T & string)[]): void {
  for (const name of names)
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw wrong(name, options[name], 'a function');
}

/** Returns the error for an option with a wrong value. */
export function wrong(option: string, given: unknown, expected: string, hint = ''): TypeError {
  return new TypeError(
    `${option}: ${given instanceof Object ? typeof given : given} given, ${expected} expected${hint}`,
  );
}

// What helps when a connection fails.

/** What a person does about the end of a link, by its reason. */
const HELP: Readonly<Record<string, string | undefined>> = {
  unauthenticated: 'The relay refused the token. Use a new one: tokens expire, and belong to one relay.',
  forbidden: 'The token is not for this link. A client needs a token of a user with the scope "connect".',
  replaced: 'Another program connected with this clientId. Give each program a clientId of its own.',
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
  const path = new URL(url).pathname.endsWith('/connect')
    ? ''
    : ' Without a proxy that maps it, the path ends in /connect.';
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url) + path;
  return `${HELP[reason] ?? other}${said === null ? '' : ` (${said})`}`;
}

/** Returns the advice for a relay that does not answer. */
export function unreachable(url: string): string {
  return `No relay answers at ${url}. Does it run, and are host, port and path right?`;
}

/** Prints on the console what no callback of the program receives. */
export function warn(who: string, message: string): void {
  console.warn(`callboard: ${who}: ${message}`);
}
