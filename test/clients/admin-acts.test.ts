/** Tests what the admin library can change: cancelling, disconnecting, draining. */
import { describe, expect, test } from 'vitest';
import { AdminError, createAdmin, type Admin } from '../../src/clients/admin/index.ts';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

const target = { userId: 'alice', clientId: 'desk' };

async function client(relay: RealRelay): Promise<Runtime> {
  const token = await relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  runtime.connect();
  await runtime.ready();
  return runtime;
}

async function codeOf(act: Promise<unknown>): Promise<string> {
  const error = await act.catch((thrown: unknown) => thrown);
  if (!(error instanceof AdminError)) throw new Error(`no AdminError: ${String(error)}`);
  return error.code;
}

function adminOf(relay: RealRelay): Admin {
  return createAdmin({ url: relay.url, token: relay.admin });
}

describe('an operator', () => {
  test('cancels a command of any user, once', async () => {
    await using relay = await startRealRelay();
    const admin = adminOf(relay);
    await using runtime = await client(relay);
    const aborted = Promise.withResolvers<unknown>();
    runtime.handle('wait', {}, async (_params, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted.resolve(signal.reason);
    });
    await using caller = createHttpCaller({ url: relay.url, token: await relay.token('alice', 'invoke') });
    const { handle } = await caller.invoke({ ...target, action: 'wait' }, {}, { waitFor: 'acknowledged' });
    expect(await admin.cancel({ ...handle, reason: 'stuck' })).toMatchObject({
      commandId: handle.commandId,
      state: 'REQUESTED',
    });
    await aborted.promise;
    expect(await caller.await(handle)).toMatchObject({ outcome: 'completed' });
    expect(await admin.cancel(handle)).toMatchObject({ state: 'TOO_LATE', outcome: 'COMPLETED' });
    expect(await codeOf(admin.cancel({ ...handle, commandId: 'none' }))).toBe('not_found');
  });

  test('disconnects a client, which comes back', async () => {
    await using relay = await startRealRelay();
    const admin = adminOf(relay);
    await using runtime = await client(relay);
    const back = Promise.withResolvers<void>();
    let lost = false;
    runtime.onStatus(({ state }) => {
      if (state === 'connected' && lost) back.resolve();
      lost = true;
    });
    const receipt = await admin.disconnect({ ...target, reason: 'old version' });
    expect(['CLOSED', 'REQUESTED']).toContain(receipt.state);
    expect(receipt.connection).toMatchObject(target);
    await back.promise;
    expect(await codeOf(admin.disconnect({ ...target, clientId: 'none' }))).toBe('not_found');
  });

  test('never sends a disconnect twice, and rejects as unreachable if the answer is lost', async () => {
    let sent = 0;
    const fetch: typeof globalThis.fetch = () => Promise.reject(new Error(`cut ${++sent}`));
    const admin = createAdmin({ url: 'http://relay.test', token: 't', fetch });
    expect(await codeOf(admin.disconnect(target))).toBe('unreachable');
    expect(sent).toBe(1);
  });

  test('turns a refusal into an error with its code and hint', async () => {
    const refusal = { __typename: 'Refusal', code: 'client_offline', message: 'Its link is down.', retryAfterMs: 5 };
    const fetch: typeof globalThis.fetch = async () => Response.json({ data: { disconnectClient: refusal } });
    const admin = createAdmin({ url: 'http://relay.test', token: 't', fetch });
    await expect(admin.disconnect(target)).rejects.toMatchObject({
      name: 'AdminError',
      code: 'client_offline',
      message: 'Its link is down.',
      retryAfterMs: 5,
    });
  });

  test('drains a node, which then admits nothing', async () => {
    await using relay = await startRealRelay();
    const admin = adminOf(relay);
    const { nodes } = await admin.delivery().nodes();
    expect(nodes.length).toBeGreaterThan(0);
    for (const { nodeId } of nodes) {
      expect(await admin.drain({ nodeId, withinMs: 0 })).toMatchObject({ nodeId, draining: true });
    }
    await using caller = createHttpCaller({ url: relay.url, token: await relay.token('alice', 'invoke'), retries: 0 });
    await expect(caller.invoke({ ...target, action: 'wait' })).rejects.toMatchObject({ code: 'draining' });
    expect(await codeOf(admin.drain({ nodeId: 'none' }))).toBe('not_found');
  });
});
