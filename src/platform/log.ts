/** Implements core's Log with pino. Secrets and user data are redacted here. */
import pino from 'pino';
import type { Log } from '../core/log.ts';
import { createScrubber } from './scrub.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogOptions = {
  readonly level: LogLevel;
  /** Texts that are redacted in every field and message: the configured tokens and secrets. */
  readonly secrets?: readonly string[];
  /** Receives the log lines. Default: standard error, because standard output is for the output of commands. */
  readonly sink?: { write(line: string): void };
};

/**
 * Implements core's Log with pino, one JSON line per entry. Credentials and payloads are redacted before pino gets the
 * fields.
 */
export function createLog({ level, secrets = [], sink }: LogOptions): Log {
  const scrub = createScrubber(secrets);
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: createStamp(),
    formatters: { level: (label) => ({ level: label }) },
  };
  const logger = pino(options, sink ?? createBatches());
  const write =
    (method: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: Record<string, unknown>, message: string): void => {
      if (logger.isLevelEnabled(method)) logger[method](scrub.fields(fields), scrub.text(message));
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** Formats the time as pino expects it. Everything but the milliseconds is formatted once a second. */
function createStamp(): () => string {
  let second = -1;
  let head = '';
  return () => {
    const now = Date.now();
    const current = Math.floor(now / 1000);
    if (current !== second) {
      second = current;
      head = `,"time":"${new Date(current * 1000).toISOString().slice(0, -'000Z'.length)}`;
    }
    return `${head}${String(now - current * 1000).padStart(3, '0')}Z"`;
  };
}

/** More bytes than this are written without waiting for the end of the tick. pino requires a value below 16 KiB. */
const BATCH_BYTES = 8 * 1024;

/** Writes to standard error, once per tick for all its lines. The rest is written when the process exits. */
function createBatches(): { write(line: string): void } {
  const destination = pino.destination({ dest: 2, sync: true, minLength: BATCH_BYTES });
  let planned = false;
  const flush = (): void => {
    planned = false;
    try {
      destination.flushSync();
    } catch (error) {
      // Emitted as for any failed write, so that pino's own handler ignores a closed reader (EPIPE).
      destination.emit('error', error);
    }
  };
  process.once('exit', flush);
  return {
    write(line) {
      destination.write(line);
      if (planned) return;
      planned = true;
      setImmediate(flush);
    },
  };
}
