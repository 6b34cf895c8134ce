/** A client that keeps notes, slowly enough that its progress can be seen. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from 'callboard-client/runtime';

/** Connects the client. `pauseMs`: the time that each half of the work takes. */
export function startDesk({ url, pauseMs = 1_000 }) {
  const notes = [];
  const runtime = createRuntime({
    url: `${url.replace('http', 'ws')}/relay/connect`,
    token: async () => (await fetch(`${url}/token/desk`)).text(),
    clientId: 'desk-1',
    clientType: 'console',
  });
  const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
  runtime.handle('notes.add', { summary: 'Adds a note', schema }, async ({ text }, { progress, signal }) => {
    for (const done of [1, 2]) {
      await sleep(pauseMs, null, { signal });
      progress({ done, of: 2 });
    }
    return { count: notes.push(text) };
  });
  runtime.connect();
  return runtime;
}

if (import.meta.main) startDesk({ url: process.env.APP ?? 'http://127.0.0.1:4400' });
