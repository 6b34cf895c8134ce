/**
 * Implements core's Log: redacts secrets and user data, and writes one line of JSON for each entry to standard error.
 */
import { writeSync } from 'node:fs';
import { BoundedMap } from '../core/collections.ts';
import type { Log } from '../core/ports.ts';

type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogOptions = {
  readonly level: LogLevel;
  /** The texts that are redacted in every field and message: the configured tokens and secrets. */
  readonly secrets?: readonly string[];
  /** Receives the log lines. Default: standard error, because standard output carries the output of commands. */
  readonly sink?: Sink;
};

/** Core's Log, to which texts can be added that it must redact. */
export type RedactingLog = Log & {
  /** Adds texts that are redacted in every later line. */
  redact(secrets: readonly string[]): void;
};

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

type Method = Exclude<LogLevel, 'silent'>;

/** Creates a log. Each line is a JSON object with `level`, `time`, the entry's fields, the shared fields, and `msg`. */
export function createLog({ level, secrets = [], sink = createStderrSink() }: LogOptions): RedactingLog {
  const scrub = createScrubber(secrets);
  const stamp = createStamp();
  const least = LEVELS.indexOf(level);
  /** The redacted JSON text of shared fields and the message that follows them, by the object of the fields. */
  let known = new WeakMap<object, { readonly message: string; readonly text: string }>();
  const endOf = (message: string): string => `"msg":${JSON.stringify(scrub.text(message))}}\n`;
  const sharedEnd = (shared: Record<string, unknown>, message: string): string => {
    const before = known.get(shared);
    if (before?.message === message) return before.text;
    const text = scrub.members(shared) + endOf(message);
    known.set(shared, { message, text });
    return text;
  };
  const write = (method: Method): Log[Method] => {
    const head = `{"level":"${method}","time":"`;
    if (LEVELS.indexOf(method) < least) return () => {};
    return (fields, message, shared) => {
      const end = shared ? sharedEnd(shared, message) : endOf(message);
      sink.write(`${head}${stamp()}",${scrub.members(fields)}${end}`);
    };
  };
  const redact = (more: readonly string[]): void => {
    scrub.add(more);
    known = new WeakMap();
  };
  return { redact, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/**
 * Returns a function that returns the current time in ISO format. The function formats only the milliseconds anew
 * within one second.
 */
function createStamp(): () => string {
  let second = -1;
  let head = '';
  return () => {
    const now = Date.now();
    const current = Math.floor(now / 1000);
    if (current !== second) {
      second = current;
      head = new Date(current * 1000).toISOString().slice(0, -'000Z'.length);
    }
    return `${head}${String(now - current * 1000).padStart(3, '0')}Z`;
  };
}

// Writes log lines to standard error without blocking the process.

const STDERR = 2;
/** The maximum number of characters that wait for a slow reader of standard error. Further lines are dropped. */
const WAITING_CHARS = 1024 * 1024;
/** The delay before a write to a full pipe is tried again, in milliseconds. */
const RETRY_MS = 20;

type Sink = { write(line: string): void };

/**
 * Creates a sink that writes to standard error: once per turn of the event loop, and the rest when the process exits.
 * If the reader is slow, at most WAITING_CHARS characters wait, and further lines are dropped. On any error other than
 * a full pipe, the waiting lines are dropped.
 */
export function createStderrSink(write = (bytes: Uint8Array): number => writeSync(STDERR, bytes)): Sink {
  let waiting = '';
  let left: Uint8Array = Buffer.alloc(0);
  let planned = false;
  const flush = (): void => {
    planned = false;
    left = Buffer.concat([left, Buffer.from(waiting)]);
    waiting = '';
    try {
      while (left.length > 0) left = left.subarray(write(left));
    } catch (error) {
      const isFull = error instanceof Error && 'code' in error && error.code === 'EAGAIN';
      if (isFull) retry();
      else left = left.subarray(left.length);
    }
  };
  const retry = (): void => {
    planned = true;
    setTimeout(flush, RETRY_MS).unref();
  };
  process.once('exit', flush);
  return {
    write(line) {
      if (waiting.length + left.length > WAITING_CHARS) return;
      waiting += line;
      if (planned) return;
      planned = true;
      setImmediate(flush);
    },
  };
}

// Redacts credentials and user data in log entries.

const REDACTED = '[redacted]';
/**
 * The names of fields that contain credentials or user data. Names are compared in lower case and without separators.
 */
const SENSITIVE_NAMES = new Set([
  ...['authorization', 'cookie', 'setcookie', 'token', 'admintoken', 'granttoken', 'secret', 'password', 'ticket'],
  ...['payload', 'params', 'result', 'metadata', 'body', 'variables', 'progress', 'schema', 'headers', 'query'],
]);
const BEARER = /bearer\s+[^\s"',]+/gi;
/**
 * Matches three or more parts joined by dots, such as a JWT. A match begins only at the start of a run of such parts,
 * so matching takes linear time.
 */
const DOTTED = /(?<![\w.-])[\w-]*(?:\.[\w-]*){2,}/g;
/** Matches grant tokens and tickets of site sessions, anywhere in a text. */
const GRANT = /\bcb[gt]_[A-Za-z0-9_-]{43,}/g;
const TICKET = /([?&](?:ticket|token|access_token)=)[^&\s"']+/gi;
/**
 * Matches if any of the patterns above can match. It is a quick first check, because most texts contain nothing to
 * redact.
 */
const SUSPECT = /bearer|eyJ|cb[gt]_|[?&]/i;
/** The number of levels of nested objects that a log line shows. */
const DEPTH = 4;
const TEXT_MAX = 4096;
/**
 * How many characters of a long text are examined, besides as many as the longest credential has. A credential that the
 * cut splits may not be recognized, so as many characters before the cut as the longest credential has are not shown.
 */
const EXAMINED_MAX = 4 * TEXT_MAX;
/** How many characters of a credential are enough for the patterns above to recognize it. */
const RECOGNIZED = 64;
/** The number of items of a list that a log line shows. */
const ITEMS_MAX = 50;

function createScrubber(secrets: readonly string[]) {
  let known: readonly string[] = [];
  let inJson: readonly string[] = [];
  let longest = RECOGNIZED;
  /** Adds texts to redact from now on. */
  const add = (more: readonly string[]): void => {
    const texts = new Set([...known, ...more].filter((secret) => secret.length > 0));
    known = [...texts].sort((a, b) => b.length - a.length);
    inJson = known.map((secret) => JSON.stringify(secret).slice(1, -1));
    longest = Math.max(RECOGNIZED, known[0]?.length ?? 0);
  };
  add(secrets);
  const redact = (raw: string): string => {
    const plain = known.reduce(
      (line, secret) => (line.includes(secret) ? line.replaceAll(secret, REDACTED) : line),
      raw,
    );
    if (!SUSPECT.test(plain)) return plain;
    return plain
      .replace(BEARER, REDACTED)
      .replace(DOTTED, withoutJwt)
      .replace(GRANT, REDACTED)
      .replace(TICKET, `$1${REDACTED}`);
  };
  /** Returns the text with credentials redacted, cut to 4096 characters, with `…` at the end if it was cut. */
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
    for (const [key, member] of Object.entries(raw)) {
      const name = text(key);
      // Field names may come from outside. Assigning to `__proto__` would set the prototype.
      if (name !== '__proto__') shown[name] = isSensitive(key) ? REDACTED : value(member, depth);
    }
    return shown;
  };
  const error = (raw: Error, depth: number): unknown => ({
    name: raw.name,
    message: text(raw.message),
    code: 'code' in raw ? value(raw.code, 1) : undefined,
    stack: text(raw.stack ?? ''),
    cause: raw.cause === undefined ? undefined : value(raw.cause, depth - 1),
  });
  const isClean = (json: string): boolean =>
    json.length <= TEXT_MAX && !SUSPECT.test(json) && !inJson.some((secret) => json.includes(secret));
  return {
    text,
    add,
    /**
     * Returns the fields as JSON members, each followed by a comma: secrets redacted, errors expanded, depth and
     * lengths bounded. Throws only if a getter of the fields throws.
     */
    members(fields: Record<string, unknown>): string {
      // Most entries are flat and contain nothing to redact, so their whole text is checked once, which is cheaper than
      // one check per field. The check is valid because JSON escapes none of the characters that SUSPECT looks for.
      const whole = isFlat(fields) ? JSON.stringify(fields) : '';
      const text = whole !== '' && isClean(whole) ? whole : JSON.stringify(members(fields, DEPTH));
      return text === '{}' ? '' : `${text.slice(1, -1)},`;
    },
  };
}

/** Whether each field may be shown and its value is a text, a number, a boolean, null or undefined. */
function isFlat(fields: Record<string, unknown>): boolean {
  for (const name in fields) {
    const value = fields[name];
    const isLeaf = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (isSensitive(name) || !(isLeaf || value === null || value === undefined)) return false;
  }
  return true;
}

/**
 * Redacts a JWT in a run of parts joined by dots: everything from the first `eyJ`, with which a JWT begins, if two more
 * parts follow.
 */
function withoutJwt(run: string): string {
  const at = run.indexOf('eyJ');
  return at >= 0 && run.slice(at).split('.').length > 2 ? run.slice(0, at) + REDACTED : run;
}

/** Caches which field names are sensitive. Bounded, because names may come from outside. */
const nameCache = new BoundedMap<string, boolean>({ most: 1_000, order: 'used' });

function isSensitive(key: string): boolean {
  const known = nameCache.get(key);
  if (known !== undefined) return known;
  const sensitive = SENSITIVE_NAMES.has(key.toLowerCase().replaceAll(/[^a-z]/g, ''));
  nameCache.set(key, sensitive);
  return sensitive;
}
