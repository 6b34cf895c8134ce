/**
 * Tests the exit codes of calls whose relay or client fails in the middle. Each call goes to a real relay with a fault
 * that the test causes.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../../src/backends/memory/backend.ts';
import type { Backend } from '../../../src/core/backend.ts';
import { CallboardError } from '../../../src/core/errors.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { createCrypto, systemClock } from '../../../src/platform/system.ts';
import { createCallboard, type Callboard } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { startRealRelay } from '../../clients/kit/real-relay.ts';
import { client, type Peer } from '../../gateway/kit/test-gateway.ts';
import { operatorOf } from './kit/operator.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

const SECRET = 'a secret of the tests, long enough for HS256';
const HELLO = { client_id: 'desk', payload: { actions: [{ name: 'work' }] } };
const peers: Peer[] = [];
afterEach(() => peers.splice(0).forEach(({ ws }) => ws.terminate()));

it('is 8 when the client is killed after the dispatch, and the awaiting line says so too', async () => {
  await using relay = await startRealRelay();
  const port = Number(new URL(relay.link).port);
  const desk = await client({ port, peers }, { ...HELLO, token: await relay.token('alice', 'connect') });
  const env = { CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: await relay.token('alice', 'invoke') };
  const run = operatorOf(env);
  const calling = run(['call', 'alice/desk', 'work', '--id', 'c1', '--respond', '1s', '-o', 'json']);
  await desk.next('command');
  desk.ws.terminate();
  const { code, out } = await calling;
  expect([code, JSON.parse(out)]).toMatchObject([8, { outcome: 'outcome_unknown', stage: 'terminal' }]);
  expect(await run(['calls', 'await', 'alice/desk/c1'])).toMatchObject({ code: 8 });
  expect(await run(['calls', 'get', 'alice/desk/c1', '-o', 'json'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('"last_proven_stage":"dispatched"'),
  });
});

type Store = { admitting: boolean; answering: boolean };

/**
 * Starts a real relay whose store loses the answer to an admission, as when its connection breaks. With `admitting`,
 * the store admits the command nevertheless. Without `answering`, the store cannot be read either.
 */
async function relayWithLoss(
  store: Store,
): Promise<{ callboard: Callboard; url: string; env: Record<string, string> }> {
  const crypto = createCrypto('test');
  const whole = createMemoryBackend({
    markSecret: 'x',
    clock: systemClock,
    log: silentLog,
    sha256: (text) => crypto.sha256(text),
  });
  const lost = (): never => {
    throw new CallboardError('store_unavailable', 'The store does not answer.');
  };
  const commands: Backend['commands'] = Object.create(whole.commands, {
    admit: {
      value: (request: never) => {
        if (store.admitting) void whole.commands.admit(request);
        return lost();
      },
    },
    get: { value: (keys: never) => (store.answering ? whole.commands.get(keys) : lost()) },
  });
  const backend: Backend = Object.create(whole, { commands: { value: commands } });
  const callboard = createCallboard({ backend, config: { auth: { secret: SECRET, adminTokens: [] } } });
  const url = await callboard.listen();
  const token = await signToken({
    secret: SECRET,
    user: 'alice',
    scopes: ['invoke', 'connect'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });
  return { callboard, url, env: { CALLBOARD_URL: url, CALLBOARD_TOKEN: token } };
}

describe('a 503 during a call', () => {
  const argv = ['call', 'alice/desk', 'work', '--id', 'c1', '--connect', '1m', '-o', 'json'];
  const LINE = 'callboard calls await alice/desk/c1';

  it('is 9 if the record says that the command lives, with the line that awaits it', async () => {
    const { callboard, env } = await relayWithLoss({ admitting: true, answering: true });
    await using _relay = callboard;
    const { code, out, err } = await operatorOf(env)(argv);
    expect([code, JSON.parse(out), err]).toMatchObject([
      9,
      { outcome: null, stage: 'admitted' },
      expect.stringContaining(LINE),
    ]);
    expect(err).toContain('store_unavailable');
  });

  it('is 8 if there is no record, or if it cannot be read', async () => {
    for (const store of [
      { admitting: false, answering: true },
      { admitting: true, answering: false },
    ]) {
      const { callboard, env } = await relayWithLoss(store);
      await using _relay = callboard;
      const { code, out, err } = await operatorOf(env)(argv);
      expect([code, out, err]).toEqual([8, '', expect.stringContaining(LINE)]);
      expect(err).toContain('may have run');
    }
  });
});
