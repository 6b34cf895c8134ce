/** Runs the clients and the callers of several users. Their links move to the relays that own the users. */
import { z } from 'zod';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import type { Started } from '../lib/child.ts';
import { drive, DRIVE } from '../lib/drive.ts';
import { ACTION, CLIENT_IDS, PAYLOAD } from '../lib/rpc.ts';
import { PlainSocket } from './rpc-client.ts';

/** `urls`: the URLs of all relays. Each user's links begin at a different relay. */
const OPTIONS = z.object({
  urls: z.array(z.string()),
  users: z.array(z.object({ user: z.string(), token: z.string() })),
});

export async function start(given: unknown): Promise<Started> {
  const { urls, users } = OPTIONS.parse(given);
  const callers = await Promise.all(
    users.map(async ({ user, token }, i) => {
      const at = i % urls.length;
      const url = [...urls.slice(at), ...urls.slice(0, at)];
      for (const clientId of CLIENT_IDS) {
        const runtime = createRuntime({ url, token, clientId, clientType: 'console', WebSocket: PlainSocket });
        runtime.handle(ACTION, {}, (params) => ({ ok: params }));
        runtime.connect();
        await runtime.ready();
      }
      return { user, caller: createLinkCaller({ url, token, WebSocket: PlainSocket }) };
    }),
  );
  let turn = 0;
  const call = async (): Promise<void> => {
    const n = turn++;
    const { user, caller } = callers[n % callers.length] ?? fail();
    const clientId = CLIENT_IDS[Math.floor(n / callers.length) % CLIENT_IDS.length] ?? '';
    const answer = await caller.invoke({ userId: user, clientId, action: ACTION }, PAYLOAD);
    if (answer.outcome !== 'completed') throw new Error(`A command ended ${answer.outcome}.`);
  };
  // One call for each caller opens the callers' links.
  for (const _ of callers) await call();
  return { acts: { drive: (asked) => drive(call, DRIVE.parse(asked)) } };
}

function fail(): never {
  throw new Error('There are no users.');
}
