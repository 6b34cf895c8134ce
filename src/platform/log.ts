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
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  const logger = sink ? pino(options, sink) : pino(options, pino.destination({ dest: 2, sync: true }));
  const write =
    (method: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: Record<string, unknown>, message: string): void => {
      if (logger.isLevelEnabled(method)) logger[method](scrub.fields(fields), scrub.text(message));
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
