/**
 * Runs the file operations of a spill directory in a worker thread, because each of the ten or so steps of a write
 * would otherwise wait for a turn of the event loop, which may be long while other users send a lot.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SpillFiles } from './files.ts';

type Method = Exclude<keyof SpillFiles, 'close'>;

/** A call of a method of SpillFiles, as it is sent to the thread. */
export type ThreadCall = {
  [M in Method]: { readonly id: number; readonly method: M; readonly args: Parameters<SpillFiles[M]> };
}[Method];
/** The answer to a call. `code`: the error code of the system. */
export type ThreadAnswer = { readonly id: number } & (
  { readonly value: unknown } | { readonly error: { readonly message: string; readonly code: string | undefined } }
);

type Pending = { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void };

// In the published package the files are compiled, so the extension differs.
const ENTRY = new URL(`./thread-entry${extname(import.meta.filename)}`, import.meta.url);

/**
 * Creates the files of a directory. The thread starts at the first call, and keeps the process alive only while a call
 * is in progress. If the thread ends, calls in progress are rejected, and the next call starts a new thread. `entry`:
 * the module that the thread runs.
 */
export function createSpillThread(root: string, entry = ENTRY): SpillFiles {
  const pending = new Map<number, Pending>();
  let worker: Worker | null = null;
  let last = 0;
  let isClosed = false;
  const stop = (): void => {
    const ended = worker;
    worker = null;
    void ended?.terminate();
  };
  const settle = (answer: ThreadAnswer): void => {
    const call = pending.get(answer.id);
    pending.delete(answer.id);
    if (pending.size === 0) worker?.unref();
    if (pending.size === 0 && isClosed) stop();
    if ('error' in answer) call?.reject(errorOf(answer.error));
    else call?.resolve(answer.value as never);
  };
  const start = (): Worker => {
    const started = new Worker(entry, { workerData: root, execArgv: [], name: 'spill' });
    const end = (error: Error): void => {
      if (worker !== started) return;
      worker = null;
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    };
    started.on('message', settle);
    started.on('error', end);
    started.on('exit', () => end(new Error('the thread of large payloads ended')));
    return started;
  };
  const call = <M extends Method>(
    method: M,
    args: Parameters<SpillFiles[M]>,
    transferred: readonly Uint8Array[] = [],
  ): Promise<Awaited<ReturnType<SpillFiles[M]>>> => {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<SpillFiles[M]>>>();
    worker ??= start();
    pending.set(++last, { resolve, reject });
    worker.ref();
    const buffers = transferred.map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer);
    worker.postMessage({ id: last, method, args }, buffers);
    return promise;
  };
  return {
    write: (place, content) => call('write', [place, content], [content]),
    read: (ref) => call('read', [ref]),
    remove: (place) => call('remove', [place]),
    measure: () => call('measure', []),
    removePast: (now) => call('removePast', [now]),
    close() {
      isClosed = true;
      if (pending.size === 0) stop();
    },
  };
}

function errorOf({ message, code }: { readonly message: string; readonly code: string | undefined }): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}
