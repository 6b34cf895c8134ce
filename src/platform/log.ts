/** Implements core's Log: one line of JSON an entry. Secrets and user data are redacted here. */
import type { Log } from '../core/log.ts';
import { createStderrSink, type Sink } from './log-sink.ts';
import { createScrubber } from './scrub.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogOptions = {
  readonly level: LogLevel;
  /** Texts that are redacted in every field and message: the configured tokens and secrets. */
  readonly secrets?: readonly string[];
  /** Receives the log lines. Default: standard error, because standard output is for the output of commands. */
  readonly sink?: Sink;
};

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

type Method = Exclude<LogLevel, 'silent'>;

/**
 * Implements core's Log with one JSON line per entry: `level`, `time`, the fields, `msg`. Credentials and payloads are
 * redacted.
 */
export function createLog({ level, secrets = [], sink = createStderrSink() }: LogOptions): Log {
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
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** The current time in ISO format. Everything but the milliseconds is formatted once a second. */
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
