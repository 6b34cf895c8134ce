const GONE = '[redacted]';
/** Names of fields that contain credentials or user data. Compared in lower case and without separators. */
const CLOSED = new Set([
  ...['authorization', 'cookie', 'setcookie', 'token', 'admintoken', 'granttoken', 'secret', 'password', 'ticket'],
  ...['payload', 'params', 'result', 'metadata', 'body', 'variables', 'progress', 'schema', 'headers', 'query'],
]);
const BEARER = /bearer\s+[^\s"',]+/gi;
const JWT = /eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
/** Grant tokens and tickets of site sessions, anywhere in a text. */
const GRANT = /\bcb[gt]_[A-Za-z0-9_-]{43,}/g;
const TICKET = /([?&](?:ticket|token|access_token)=)[^&\s"']+/gi;
/** A quick check whether any of the patterns above can match. Most texts do not match it. */
const SUSPECT = /bearer|eyJ|cb[gt]_|[?&]/i;
const DEPTH = 4;
const TEXT_MAX = 4096;
const ITEMS_MAX = 50;

export type Scrubber = {
  /**
   * The first 4096 characters of the text (and `…` if it is longer), with everything that looks like a credential
   * redacted.
   */
  text(text: string): string;
  /**
   * A copy that is safe to log: sensitive fields redacted, errors expanded, depth and lengths bounded. Never throws.
   */
  fields(fields: Record<string, unknown>): Record<string, unknown>;
  /** The same as the JSON text of an object. */
  json(fields: Record<string, unknown>): string;
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
  const inJson = known.map((secret) => JSON.stringify(secret).slice(1, -1));
  const isClean = (json: string): boolean =>
    json.length <= TEXT_MAX && !SUSPECT.test(json) && !inJson.some((secret) => json.includes(secret));
  return {
    text,
    fields: (fields) => members(fields, DEPTH),
    json(fields) {
      // Most entries are flat and hold nothing to redact. One check of their whole text is cheaper than one of each
      // field; JSON escapes no character that SUSPECT looks for.
      const whole = isFlat(fields) ? JSON.stringify(fields) : '';
      return whole !== '' && isClean(whole) ? whole : JSON.stringify(members(fields, DEPTH));
    },
  };
}

/** Whether every field is open and holds a text, a number, a boolean or nothing. */
function isFlat(fields: Record<string, unknown>): boolean {
  for (const name in fields) {
    const value = fields[name];
    const isLeaf = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (isClosed(name) || !(isLeaf || value === null || value === undefined)) return false;
  }
  return true;
}

/** Skips `__proto__`, which a name from outside may be: assigning it would set the prototype. */
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value;
}

const judged = new Map<string, boolean>();
const JUDGED_MAX = 1_000;

function isClosed(key: string): boolean {
  const known = judged.get(key);
  if (known !== undefined) return known;
  const closed = CLOSED.has(key.toLowerCase().replaceAll(/[^a-z]/g, ''));
  // Bounded, because names from outside must not fill it. The names of our own fields are few.
  if (judged.size < JUDGED_MAX) judged.set(key, closed);
  return closed;
}
