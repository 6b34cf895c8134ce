/** Implements core's Log. Writes one line of JSON for each entry, with secrets and user data redacted. */
import type { Log } from '../core/log.ts';
import { createStderrSink, type Sink } from './log-sink.ts';
import { createScrubber } from './scrub.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
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

/**
 * Implements core's Log with one JSON line per entry: `level`, `time`, the fields, `msg`. Credentials and payloads are
 * redacted.
 */
export function createLog({ level, secrets = [], sink = createStderrSink() }: LogOptions): RedactingLog {
  const scrub = createScrubber(secrets);
  const stamp = createStamp();
  const least = LEVELS.indexOf(level);
  const write = (method: Method): Log[Method] => {
    const head = `{"level":"${method}","time":"`;
    if (LEVELS.indexOf(method) < least) return () => {};
    return (fields, message) => {
      const members = scrub.json(fields).slice(1, -1);
      const comma = members === '' ? '' : ',';
      sink.write(`${head}${stamp()}",${members}${comma}"msg":${JSON.stringify(scrub.text(message))}}\n`);
    };
  };
  const redact = (more: readonly string[]): void => scrub.add(more);
  return { redact, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/**
 * Creates a function that returns the current time in ISO format. Everything but the milliseconds is formatted once a
 * second.
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
