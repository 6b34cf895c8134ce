import pino from 'pino';
import type { Log } from '../core/log.ts';
import { createScrubber } from './scrub.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogOptions = {
  readonly level: LogLevel;
  /** Texts that must never be written whatever field or message they stand in: the configured tokens and secret. */
  readonly secrets?: readonly string[];
  /** Where lines go; standard error when absent, so that standard output stays for what a command answers. */
  readonly sink?: { write(line: string): void };
};

/** core's Log over pino: one JSON line each. Fields that carry credentials or payloads are cut out before pino sees them. */
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

/** The time as pino writes it; all but the milliseconds once a second. */
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

/** More than this is written at once; pino allows less than 16 KiB. */
const BATCH_BYTES = 8 * 1024;

/** Standard error, written once for all lines of a tick. What is left when the process ends is written then. */
function createBatches(): { write(line: string): void } {
  const destination = pino.destination({ dest: 2, sync: true, minLength: BATCH_BYTES });
  let planned = false;
  const flush = (): void => {
    planned = false;
    try {
      destination.flushSync();
    } catch (error) {
      // As it says of any write: it forgives a reader that has gone.
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
