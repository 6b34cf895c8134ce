/** Writes log lines to standard error without blocking the process. */
import { writeSync } from 'node:fs';

const STDERR = 2;
/** The highest number of characters that wait while the reader of standard error is slow. Further lines are dropped. */
const WAITING_CHARS = 1024 * 1024;
/** How soon a write to a full pipe is tried again, in milliseconds. */
const RETRY_MS = 20;

export type Sink = { write(line: string): void };

/**
 * Creates a sink that writes to standard error, once per tick for all lines of the tick. Lines that are left are
 * written when the process exits. A slow reader delays no request: lines wait, up to a bound, and are dropped beyond
 * it. A reader that is gone is ignored.
 */
export function createStderrSink(write: (bytes: Uint8Array) => number = toStderr): Sink {
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
      if (isFull(error)) retry();
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

function toStderr(bytes: Uint8Array): number {
  return writeSync(STDERR, bytes);
}

/** Whether standard error is a non-blocking pipe that is full. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
