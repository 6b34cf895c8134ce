/** Reads the address of Redis from its URL, and describes it without secrets. Connects to nothing. */
import { CallboardError } from '../../core/errors.ts';

/** The address of a server. `SocketPath` below: a socket of this machine. */
export type Address = { readonly host: string; readonly port: number };
type SocketPath = { readonly path: string };
/** The login of a target. `replaceLogin` changes this object, and connections read it at each attempt. */
export type Login = { username: string | null; password: string | null };

/**
 * The address of Redis: a single server, the master that sentinels name, or a cluster that is discovered through any of
 * `nodes`.
 */
export type RedisTarget =
  | {
      readonly form: 'single';
      readonly at: Address | SocketPath;
      readonly login: Login;
      readonly tls: boolean;
      readonly db: number;
    }
  | {
      readonly form: 'sentinel';
      readonly sentinels: readonly Address[];
      readonly master: string;
      readonly login: Login;
      /** The login of the sentinels. */
      readonly sentinelLogin: Login;
      readonly tls: boolean;
      readonly db: number;
    }
  | { readonly form: 'cluster'; readonly nodes: readonly Address[]; readonly login: Login; readonly tls: boolean };

const SCHEMES = ['redis', 'rediss', 'redis+sentinel', 'rediss+sentinel', 'redis+cluster', 'rediss+cluster'] as const;
const PARAMETERS: Readonly<Record<RedisTarget['form'], ReadonlySet<string>>> = {
  single: new Set(),
  sentinel: new Set(['db', 'sentinel_username', 'sentinel_password']),
  cluster: new Set(),
};
const PORTS: Readonly<Record<RedisTarget['form'], number>> = { single: 6379, sentinel: 26_379, cluster: 6379 };

type Split = {
  readonly form: RedisTarget['form'];
  readonly tls: boolean;
  readonly login: Login;
  readonly hosts: readonly Address[];
  readonly path: string;
  readonly parameters: URLSearchParams;
};

/**
 * Reads `redis://[user:password@]host[:port][/db]`, `unix://[user:password@]/path[?db=]`,
 * `redis+sentinel://…host:port,host:port/master[?db=&sentinel_username=&sentinel_password=]` or
 * `redis+cluster://…host:port,host:port`; each with `rediss` instead of `redis` for TLS. Throws `invalid_argument` with
 * a message that never repeats any of the text, because it may contain a password.
 */
export function readTarget(text: string): RedisTarget {
  if (text.startsWith('unix:')) return socketTarget(text);
  const { form, tls, login, hosts, path, parameters } = split(text);
  const [at] = hosts;
  if (form === 'cluster') {
    if (path !== '') wrong('a cluster has no path: its only database is 0');
    return { form, nodes: hosts, login, tls };
  }
  if (form === 'single') {
    if (!at || hosts.length > 1)
      wrong('one host was expected; several belong to redis+sentinel:// or redis+cluster://');
    return { form, at, login, tls, db: database(path) };
  }
  if (!/^[A-Za-z0-9._-]+$/.test(path))
    wrong('the path of a sentinel address is the name of the master, as redis+sentinel://host:26379/mymaster');
  const sentinelLogin = {
    username: parameters.get('sentinel_username'),
    password: parameters.get('sentinel_password'),
  };
  return {
    form,
    sentinels: hosts,
    master: path,
    login,
    sentinelLogin,
    tls,
    db: database(parameters.get('db') ?? ''),
  };
}

/** Reads the address of a socket of this machine. */
function socketTarget(text: string): RedisTarget {
  const [, login, path = '', query = ''] = /^unix:(?:\/\/(?:([^/?#]*)@)?)?(\/[^?#]*)(?:\?([^#]*))?$/.exec(text) ?? [];
  if (path === '') wrong('a socket has an absolute path, as unix:///run/redis/redis.sock');
  const parameters = new URLSearchParams(query);
  if ([...parameters.keys()].some((name) => name !== 'db')) wrong('the parameter of a socket is db');
  const db = database(parameters.get('db') ?? '');
  return { form: 'single', at: { path: decode(path) }, login: readLogin(login), tls: false, db };
}

/** Returns why the text is not a valid address, without repeating any part of it; null if it is valid. */
export function targetFault(text: string): string | null {
  try {
    readTarget(text);
    return null;
  } catch (error) {
    if (error instanceof CallboardError) return error.message;
    throw error;
  }
}

/**
 * Sets the login of the target to that of another address, if the two addresses differ in nothing else. Connections use
 * the new login at their next attempt. Returns whether it was set.
 */
export function replaceLogin(target: RedisTarget, address: RedisTarget): boolean {
  const rest = ({ login: _, ...others }: RedisTarget): string => JSON.stringify(others);
  if (rest(target) !== rest(address)) return false;
  Object.assign(target.login, address.login);
  return true;
}

/** Returns the passwords of a target. They must never be written anywhere. */
export function secretsOf(target: RedisTarget): readonly string[] {
  const logins = target.form === 'sentinel' ? [target.login, target.sentinelLogin] : [target.login];
  return logins.flatMap(({ password }) => (password === null ? [] : [password]));
}

/** Describes the target without its logins, for the log. */
export function describeTarget(target: RedisTarget): string {
  const list = (addresses: readonly Address[]): string =>
    addresses.map(({ host, port }) => `${host}:${port}`).join(',');
  const scheme = target.tls ? 'rediss' : 'redis';
  switch (target.form) {
    case 'single':
      if ('path' in target.at) return `unix://${target.at.path}${target.db === 0 ? '' : `?db=${target.db}`}`;
      return `${scheme}://${list([target.at])}/${target.db}`;
    case 'sentinel':
      return `${scheme}+sentinel://${list(target.sentinels)}/${target.master}`;
    case 'cluster':
      return `${scheme}+cluster://${list(target.nodes)}`;
  }
}

function split(text: string): Split {
  const [, scheme = '', login, hosts = '', path = '', query = ''] =
    /^([a-z+]+):\/\/(?:([^/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(text) ?? [];
  if (!SCHEMES.some((known) => known === scheme))
    wrong('expected redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// (rediss+… for TLS)');
  const form = scheme.endsWith('+sentinel') ? 'sentinel' : scheme.endsWith('+cluster') ? 'cluster' : 'single';
  const parameters = new URLSearchParams(query);
  const known = PARAMETERS[form];
  if ([...parameters.keys()].some((name) => !known.has(name)))
    wrong(known.size === 0 ? 'no parameters were expected' : `the parameters are ${[...known].join(', ')}`);
  return {
    form,
    tls: scheme.startsWith('rediss'),
    login: readLogin(login),
    hosts: hosts.split(',').map((host) => address(host, PORTS[form])),
    path: decode(path),
    parameters,
  };
}

function readLogin(text: string | undefined): Login {
  if (text === undefined) return { username: null, password: null };
  const colon = text.indexOf(':');
  const username = decode(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? '' : decode(text.slice(colon + 1));
  return { username: username || null, password: password || null };
}

function address(text: string, defaultPort: number): Address {
  const [, host = '', port] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (host === '')
    wrong('a host cannot be read: expected host:port (a password with / ? # or @ in it is percent-encoded)');
  const number = port === undefined ? defaultPort : Number(port);
  if (number < 1 || number > 65_535) wrong('a port is 1 to 65535');
  return { host: host.replaceAll(/[[\]]/g, ''), port: number };
}

function database(text: string): number {
  if (!/^\d{0,5}$/.test(text)) wrong('a database is a number, as redis://host:6379/0');
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return wrong('a percent-encoded part cannot be read');
  }
}

function wrong(detail: string): never {
  throw new CallboardError('invalid_argument', detail);
}
