const GONE = '[redacted]';
/** Names of fields that hold credentials or what users sent. Compared without case and separators. */
const CLOSED = new Set([
  ...['authorization', 'cookie', 'setcookie', 'token', 'admintoken', 'granttoken', 'secret', 'password', 'ticket'],
  ...['payload', 'params', 'result', 'metadata', 'body', 'variables', 'progress', 'schema', 'headers', 'query'],
]);
const BEARER = /bearer\s+[^\s"',]+/gi;
const JWT = /eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
/** Tokens and tickets of a site's sessions, wherever they stand. */
const GRANT = /\bcb[gt]_[A-Za-z0-9_-]{43,}/g;
const TICKET = /([?&](?:ticket|token|access_token)=)[^&\s"']+/gi;
/** Whatever one of the above could be found in. Most texts hold none of it, and this asks at once. */
const SUSPECT = /bearer|eyJ|cb[gt]_|[?&]/i;
const DEPTH = 4;
const TEXT_MAX = 4096;
const ITEMS_MAX = 50;

export type Scrubber = {
  /** The text without anything that looks like a credential, and not longer than 4096 characters. */
  text(text: string): string;
  /** A copy that is safe to write: closed fields emptied, errors unfolded, depth and length bounded. Never throws. */
  fields(fields: Record<string, unknown>): Record<string, unknown>;
};

export function createScrubber(secrets: readonly string[]): Scrubber {
  const known = secrets.filter((secret) => secret.length > 0).sort((a, b) => b.length - a.length);
  const text = (raw: string): string => {
    const cut = raw.length > TEXT_MAX ? `${raw.slice(0, TEXT_MAX)}…` : raw;
    const plain = known.reduce((line, secret) => (line.includes(secret) ? line.replaceAll(secret, GONE) : line), cut);
    if (!SUSPECT.test(plain)) return plain;
    return plain.replace(BEARER, GONE).replace(JWT, GONE).replace(GRANT, GONE).replace(TICKET, `$1${GONE}`);
  };
  const value = (raw: unknown, depth: number): unknown => {
    if (typeof raw === 'string') return text(raw);
    if (typeof raw === 'bigint') return String(raw);
    if (typeof raw !== 'object' || raw === null) return typeof raw === 'function' ? undefined : raw;
    if (depth === 0) return '[deep]';
    if (raw instanceof Error) return error(raw, depth);
    if (Array.isArray(raw)) return raw.slice(0, ITEMS_MAX).map((item) => value(item, depth - 1));
    return members(raw, depth - 1);
  };
  const members = (raw: object, depth: number): Record<string, unknown> => {
    const shown: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(raw)) put(shown, key, isClosed(key) ? GONE : value(member, depth));
    return shown;
  };
  const error = (raw: Error, depth: number): unknown => ({
    name: raw.name,
    message: text(raw.message),
    code: 'code' in raw ? value(raw.code, 1) : undefined,
    stack: text(raw.stack ?? ''),
    cause: raw.cause === undefined ? undefined : value(raw.cause, depth - 1),
  });
  return { text, fields: (fields) => members(fields, DEPTH) };
}

/** A name from outside may be any, even one that assigning treats in its own way. */
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value;
}

const judged = new Map<string, boolean>();
const JUDGED_MAX = 1_000;

function isClosed(key: string): boolean {
  const known = judged.get(key);
  if (known !== undefined) return known;
  const closed = CLOSED.has(key.toLowerCase().replaceAll(/[^a-z]/g, ''));
  // Names of our own fields soon fill it; names from outside must not.
  if (judged.size < JUDGED_MAX) judged.set(key, closed);
  return closed;
}
