/** The worker thread of a spill directory, which answers the calls of thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { createSpillFiles, type SpillFiles } from './files.ts';
import type { ThreadAnswer, ThreadCall } from './thread.ts';

const files: SpillFiles = createSpillFiles(String(workerData));

async function answer({ id, method, args }: ThreadCall): Promise<ThreadAnswer> {
  try {
    const run = files[method] as (...given: typeof args) => Promise<unknown>;
    return { id, value: await run(...args) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    return { id, error: { message: error instanceof Error ? error.message : String(error), code } };
  }
}

parentPort?.on('message', (call: ThreadCall) => void answer(call).then((done) => parentPort?.postMessage(done)));
