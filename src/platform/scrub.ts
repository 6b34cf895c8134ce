/** Redacts credentials and user data in what is logged. */

const GONE = '[redacted]';
/** Names of fields that contain credentials or user data. Compared in lower case and without separators. */
const CLOSED = new Set([
  ...['authorization', 'cookie', 'setcookie', 'token', 'admintoken', 'granttoken', 'secret', 'password', 'ticket'],
  ...['payload', 'params', 'result', 'metadata', 'body', 'variables', 'progress', 'schema', 'headers', 'query'],
]);
const BEARER = /bearer\s+[^\s"',]+/gi;
/** At least three parts with dots between them, as JWTs have. It only starts where such a run starts, so it is linear. */
const DOTTED = /(?<![\w.-])[\w-]*(?:\.[\w-]*){2,}/g;
/** Grant tokens and tickets of site sessions, anywhere in a text. */
const GRANT = /\bcb[gt]_[A-Za-z0-9_-]{43,}/g;
const TICKET = /([?&](?:ticket|token|access_token)=)[^&\s"']+/gi;
/** A quick check whether any of the patterns above can match. Most texts do not match it. */
const SUSPECT = /bearer|eyJ|cb[gt]_|[?&]/i;
const DEPTH = 4;
const TEXT_MAX = 4096;
/**
 * Characters of a text that are examined. A credential that goes beyond them may not be recognized, so the last
 * characters, as many as the longest credential, are not shown.
 */
const EXAMINED_MAX = 4 * TEXT_MAX;
/** Characters that are enough to recognize a credential by the patterns above. */
const RECOGNIZED = 64;
const ITEMS_MAX = 50;

export type Scrubber = {
  /**
   * The text with everything that looks like a credential redacted, cut to 4096 characters and `…` if it is longer.
   * Only the start of a very long text is examined and shown.
   */
  text(text: string): string;
  /**
   * A copy that is safe to log: sensitive fields and credentials in names and texts redacted, errors expanded, depth
   * and lengths bounded. Never throws.
   */
  fields(fields: Record<string, unknown>): Record<string, unknown>;
  /** The same as the JSON text of an object. */
  json(fields: Record<string, unknown>): string;
};

export function createScrubber(secrets: readonly string[]): Scrubber {
  const known = secrets.filter((secret) => secret.length > 0).sort((a, b) => b.length - a.length);
  const longest = Math.max(RECOGNIZED, known[0]?.length ?? 0);
  const redact = (raw: string): string => {
    const plain = known.reduce((line, secret) => (line.includes(secret) ? line.replaceAll(secret, GONE) : line), raw);
    if (!SUSPECT.test(plain)) return plain;
    return plain.replace(BEARER, GONE).replace(DOTTED, withoutJwt).replace(GRANT, GONE).replace(TICKET, `$1${GONE}`);
  };
  const text = (raw: string): string => {
    const examined = raw.length > EXAMINED_MAX + longest ? raw.slice(0, EXAMINED_MAX + longest) : raw;
    const redacted = redact(examined);
    if (examined === raw) return redacted.length > TEXT_MAX ? `${redacted.slice(0, TEXT_MAX)}…` : redacted;
    return `${redacted.slice(0, Math.min(TEXT_MAX, Math.max(0, redacted.length - longest)))}…`;
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
    for (const [key, member] of Object.entries(raw)) put(shown, text(key), isClosed(key) ? GONE : value(member, depth));
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

/** Redacts from the first part of a dotted run that starts like a JWT, if two more parts follow. */
function withoutJwt(run: string): string {
  const at = run.indexOf('eyJ');
  return at >= 0 && run.slice(at).split('.').length > 2 ? run.slice(0, at) + GONE : run;
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
