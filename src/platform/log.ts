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
  /** Receives the log lines. Default: standard error, because standard output is for the output of commands. */
  readonly sink?: Sink;
};

/** Core's Log, which can learn texts that it must redact. */
export type RedactingLog = Log & {
  /** Also redacts these texts, in every later line. */
  redact(secrets: readonly string[]): void;
};

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

type Method = Exclude<LogLevel, 'silent'>;

/** Creates a log. The members of each line are `level`, `time`, the fields, the shared fields, `msg`. */
export function createLog({ level, secrets = [], sink = createStderrSink() }: LogOptions): RedactingLog {
  const scrub = createScrubber(secrets);
  const stamp = createStamp();
  const least = LEVELS.indexOf(level);
  /** The text of shared fields and the message after them, without what is redacted. */
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

/** Returns a function that tells the time in ISO format. It formats everything but the milliseconds once a second. */
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
/** The most characters that wait while the reader of standard error is slow. Further lines are dropped. */
const WAITING_CHARS = 1024 * 1024;
/** The time after which a write to a full pipe is tried again, in milliseconds. */
const RETRY_MS = 20;

type Sink = { write(line: string): void };

/**
 * Creates a sink that writes to standard error: once per turn of the event loop, and the rest when the process exits.
 * For a slow reader, at most WAITING_CHARS wait, and further lines are dropped. Any error other than a full pipe drops
 * the lines that wait.
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
/** The names of fields that contain credentials or user data. Compared in lower case and without separators. */
const SENSITIVE_NAMES = new Set([
  ...['authorization', 'cookie', 'setcookie', 'token', 'admintoken', 'granttoken', 'secret', 'password', 'ticket'],
  ...['payload', 'params', 'result', 'metadata', 'body', 'variables', 'progress', 'schema', 'headers', 'query'],
]);
const BEARER = /bearer\s+[^\s"',]+/gi;
/**
 * Matches at least three parts joined by dots, as in JWTs. It matches only from the start of such a run of parts, so it
 * takes linear time.
 */
const DOTTED = /(?<![\w.-])[\w-]*(?:\.[\w-]*){2,}/g;
/** Matches grant tokens and tickets of site sessions, anywhere in a text. */
const GRANT = /\bcb[gt]_[A-Za-z0-9_-]{43,}/g;
const TICKET = /([?&](?:ticket|token|access_token)=)[^&\s"']+/gi;
/** A quick check whether any of the patterns above can match. Most texts do not match it. */
const SUSPECT = /bearer|eyJ|cb[gt]_|[?&]/i;
/** The number of levels of nested objects that a log line shows. */
const DEPTH = 4;
const TEXT_MAX = 4096;
/**
 * The number of characters of a long text that are examined, in addition to the length of the longest credential. A
 * credential that is cut off at the end of the examined part may not be recognized. So the last characters of that
 * part, as many as the longest credential has, are not shown.
 */
const EXAMINED_MAX = 4 * TEXT_MAX;
/** The number of characters that are enough to recognize a credential by the patterns above. */
const RECOGNIZED = 64;
/** The number of items of a list that a log line shows. */
const ITEMS_MAX = 50;

function createScrubber(secrets: readonly string[]) {
  let known: readonly string[] = [];
  let inJson: readonly string[] = [];
  let longest = RECOGNIZED;
  /** Also redacts these texts from now on. */
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
  /** Returns the text without what looks like a credential, cut to 4096 characters and `…`. */
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
      // Names may come from outside, and assigning this one would set the prototype.
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
     * Returns the members of a safe copy as JSON, each with a comma after it: secrets redacted, errors expanded, depth
     * and lengths bounded. Throws only if a getter of the fields does.
     */
    members(fields: Record<string, unknown>): string {
      // Most entries are flat and hold nothing to redact. One check of their whole text is cheaper than one of each
      // field; JSON escapes no character that SUSPECT looks for.
      const whole = isFlat(fields) ? JSON.stringify(fields) : '';
      const text = whole !== '' && isClean(whole) ? whole : JSON.stringify(members(fields, DEPTH));
      return text === '{}' ? '' : `${text.slice(1, -1)},`;
    },
  };
}

/** Whether every field may be shown and holds a text, a number, a boolean or nothing. */
function isFlat(fields: Record<string, unknown>): boolean {
  for (const name in fields) {
    const value = fields[name];
    const isLeaf = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    if (isSensitive(name) || !(isLeaf || value === null || value === undefined)) return false;
  }
  return true;
}

/** Redacts the end of a dotted run: from the first `eyJ`, with which a JWT begins, if two more parts follow. */
function withoutJwt(run: string): string {
  const at = run.indexOf('eyJ');
  return at >= 0 && run.slice(at).split('.').length > 2 ? run.slice(0, at) + REDACTED : run;
}

/** Whether each name is sensitive. Bounded, because names may come from outside. */
const nameCache = new BoundedMap<string, boolean>({ most: 1_000, order: 'used' });

function isSensitive(key: string): boolean {
  const known = nameCache.get(key);
  if (known !== undefined) return known;
  const sensitive = SENSITIVE_NAMES.has(key.toLowerCase().replaceAll(/[^a-z]/g, ''));
  nameCache.set(key, sensitive);
  return sensitive;
}
