/** Checks the options and arguments that programs pass to the libraries, member by member. */
import { AWAIT_WITHIN_MS, CONNECT_WITHIN_MS, RESPOND_WITHIN_MS, isIn, type Range } from '../../protocol/bounds.ts';
import { DOWN_CHECKS, ID_FORM, NAME_FORM, TRACE, TRACE_FORM, WAIT_STAGES } from '../../protocol/fields.ts';
import { isRecord } from '../../protocol/json.ts';
import { see } from './advice.ts';
import { isToken } from './reconnect.ts';

/** Checks a value. Returns what is expected instead; null if the value is right. */
type Check = (value: unknown) => string | null;

type OptionalIn<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? K : never }[keyof T];
/** The checks of an object's members: those that must be present, and those that may be. */
export type MembersOf<T> = readonly [
  required: { readonly [K in Exclude<keyof T, OptionalIn<T>>]: Check },
  optional: { readonly [K in OptionalIn<T>]: Check },
];

/**
 * Throws TypeError with the member's name, unless `given` is an object whose members pass these checks. An unknown
 * member is refused too, and the message suggests the name that was probably meant, because a silently ignored option
 * is hard to find. An undefined member counts as absent. `where`: a prefix of the names in messages, such as `target.`.
 */
export function checkMembers<T extends object>(where: string, given: T, [required, optional]: MembersOf<T>): void {
  if (!isRecord(given)) throw wrong(where || 'options', given, 'an object');
  const checks: Readonly<Record<string, Check>> = { ...required, ...optional };
  try {
    checkNames(where, given, Object.keys(checks));
    for (const [name, check] of Object.entries(checks))
      if (name in required || given[name] !== undefined) checkValue(where + name, given[name], check);
  } catch (cause) {
    // Reading a member may run a getter, which may throw anything.
    throw cause instanceof TypeError ? cause : new TypeError(`${where}: a member cannot be read`, { cause });
  }
}

/** Throws TypeError if the object has a member that is not among the known names. */
export function checkNames(where: string, given: object, known: readonly string[]): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || known.includes(name)) continue;
    const [nearest, ...others] = known.toSorted((a, b) => likeness(name, b) - likeness(name, a));
    const all = `did you mean ${[nearest, ...others].join(', ')}?`;
    throw new TypeError(`${where}${name}: unknown, ${all}${see('arguments')}`);
  }
}

/** Throws TypeError with the value's name, unless the value passes the check. */
export function checkValue(name: string, value: unknown, check: Check): void {
  const expected = check(value);
  // A token is secret, so the message does not show it.
  if (expected !== null) throw wrong(name, check === TOKEN ? typeof value : value, expected);
}

/** Makes the error for an argument with a wrong value. */
export function wrong(name: string, given: unknown, expected: string): TypeError {
  const shown = given instanceof Object || isRecord(given) ? typeof given : String(given).slice(0, 100);
  return new TypeError(`${name}: ${shown} given, ${expected} expected${see('arguments')}`);
}

/** Returns how similar two names are, from 0 to 1: the fraction of the pairs of letters that both contain. */
function likeness(a: string, b: string): number {
  const other = b.toLowerCase();
  const both = [...a.toLowerCase()].filter((_, i, all) => other.includes(all.slice(i, i + 2).join('')));
  return both.length / (a.length + b.length);
}

// The checks of values. They are marked as pure, so that bundlers drop those that a library does not use.

export const ANY: Check = () => null;
export const FUNCTION = /* @__PURE__ */ check('a function', (value) => typeof value === 'function');
export const STRING = /* @__PURE__ */ check('a string', (value) => typeof value === 'string');
export const BOOLEAN = /* @__PURE__ */ check('a boolean', (value) => typeof value === 'boolean');
export const OBJECT = /* @__PURE__ */ check('an object', isRecord);
export const LIST = /* @__PURE__ */ check('an array', (value) => Array.isArray(value));
export const SIGNAL = /* @__PURE__ */ check('an AbortSignal', (value) => value instanceof AbortSignal);
export const ID = /* @__PURE__ */ check(ID_FORM, DOWN_CHECKS.id.test);
export const NAME = /* @__PURE__ */ check(NAME_FORM, DOWN_CHECKS.name.test);
export const USER = /* @__PURE__ */ check('1 to 128 characters', DOWN_CHECKS.user.test);
export const COUNT = /* @__PURE__ */ integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
export const WAIT_STAGE = /* @__PURE__ */ check(`one of ${WAIT_STAGES.join(', ')}`, (value) =>
  WAIT_STAGES.some((word) => word === value),
);
export const TRACE_ID = /* @__PURE__ */ check(TRACE_FORM, (value) => typeof value === 'string' && TRACE.test(value));
export const REASON = /* @__PURE__ */ check('at most 1024 characters', DOWN_CHECKS.text.test);
/** A number of milliseconds. Infinity is allowed: timers use the longest time that they support. */
export const QUEUED = /* @__PURE__ */ check('keep or cancel', (value) => value === 'keep' || value === 'cancel');
export const RUNNING = /* @__PURE__ */ check('leave or cancel', (value) => value === 'leave' || value === 'cancel');
export const MS = /* @__PURE__ */ check('milliseconds from 0', (value) => typeof value === 'number' && value >= 0);
export const CONNECT_MS = /* @__PURE__ */ integer(CONNECT_WITHIN_MS);
export const RESPOND_MS = /* @__PURE__ */ integer(RESPOND_WITHIN_MS);
export const AWAIT_MS = /* @__PURE__ */ integer(AWAIT_WITHIN_MS);
/** A list of hosts with ports, or of patterns for them. */
export const HOSTS = /* @__PURE__ */ check(
  'hosts such as relay-*.example:4400',
  (value) => Array.isArray(value) && value.every((host) => typeof host === 'string' && /^[^\s/@]+$/.test(host)),
);
/** The address of a link, or a list of addresses. */
export const LINK_URL: Check = (url) => addressFault(url, 'ws', (path) => path.replace(/(\/connect)?\/*$/, '/connect'));
/** The base address of a relay, or a list of addresses. */
export const BASE_URL: Check = (url) =>
  addressFault(url, 'http', (path) => path.replace(/(\/(connect|graphql))?\/*$/, ''));
export const TOKEN: Check = (token) => {
  if (typeof token === 'function' || isToken(token)) return null;
  return `a token or a function that returns one (${token ? 'without "Bearer"' : 'is its environment variable set?'})`;
};

function check(expected: string, test: (value: unknown) => boolean): Check {
  return (value) => (test(value) ? null : expected);
}

function integer(range: Range): Check {
  return check(`an integer from ${range.min} to ${range.max}`, (value) => isIn(value, range));
}

/**
 * Returns what is expected instead of an address; null if the address is right. `scheme`: the scheme without TLS.
 * `meant`: returns the path that was probably meant.
 */
function addressFault(url: unknown, scheme: 'ws' | 'http', meant: (path: string) => string): string | null {
  if (Array.isArray(url) && url.length > 0)
    return url.map((one) => addressFault(one, scheme, meant)).find((fault) => fault !== null) ?? null;
  const isUrl = typeof url === 'string' && /^(ws|http)s?:\/\/[^/]/i.test(url) && URL.canParse(url);
  const { protocol, host, pathname, hash, username, search } = new URL(isUrl ? url : `${scheme}://127.0.0.1:4400`);
  const isBase = scheme === 'http';
  // A link may have any path except `/`, because a proxy may map it to the relay's `/connect`.
  const hasPath = isBase ? pathname.replace(/\/+$/, '') === meant(pathname) && !search : pathname !== '/';
  if (isUrl && protocol.startsWith(scheme) && hasPath && !hash && !username) return null;
  return `an address such as ${protocol.replace(/^(ws|http)/, scheme)}//${host}${meant(pathname)}`;
}
