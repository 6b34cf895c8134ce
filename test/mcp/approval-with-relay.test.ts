/** Tests what an agent hears of a call about which a person is asked, and that without an answer nothing runs. */
import { expect, it } from 'vitest';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { startTestRelay, until, type TestRelay } from '../relay/kit/test-relay.ts';
import { callTool, textOf, type RawAnswer } from './kit/agents.ts';

const RESPOND_MS = 30_000;

/** The texts of the progress in an answer. */
function progressIn({ text }: RawAnswer): readonly string[] {
  return [...text.matchAll(/^data: (.*)$/gm)]
    .map(([, data = '']) => JSON.parse(data))
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => params.message);
}

async function advance({ clock }: TestRelay, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) await clock.advance(Math.min(1_000, ms - passed));
}

it('progress says that a person is asked, until the handler begins', async () => {
  await using relay = await startTestRelay({ mcp: 'on' });
  const tab = await relay.client({ payload: { actions: [{ name: 'pay', guards: { approval: true } }] } });
  const token = await relay.token('alice:invoke');
  const answer = callTool({ url: relay.url, token }, 'pay', {}, { meta: { progressToken: 'p' } });
  const { command_id } = await tab.next('command');
  await advance(relay, 6_000);
  tab.send({ type: 'ack', command_id });
  await tab.sync();
  await advance(relay, 5_000);
  tab.send({ type: 'result', command_id }, { paid: true });
  const said = progressIn(await answer);
  expect(said).toEqual(['dispatched: the client "tab" asks a person to approve the call', 'acknowledged']);
  expect((await answer).result.structuredContent).toEqual({ paid: true });
});

it('a call about which no person decides is refused before its time is over, and nothing has run', async () => {
  await using relay = await startTestRelay({ mcp: 'on' });
  const [token, own] = await Promise.all([relay.token('alice:invoke'), relay.token('alice:connect')]);
  const { clock } = relay;
  let asked = 0;
  let ran = 0;
  await using runtime = createRuntime({
    ...{ url: `${relay.linkUrl.replace(/^http/, 'ws')}/connect`, token: own ?? '', clock },
    ...{ clientId: 'desk', clientType: 'console' as const },
    approve: () => {
      asked++;
      return new Promise(() => {});
    },
  });
  runtime.handle('pay', { approval: true }, () => ({ paid: ++ran }));
  runtime.connect();
  await runtime.ready();
  const at = { url: relay.url, token };
  const call = callTool(at, 'pay', { respond_within_ms: RESPOND_MS }, { meta: { progressToken: 'p' } });
  await until(() => asked === 1);
  let answered = false;
  void call.then(() => (answered = true));
  await advance(relay, RESPOND_MS * 0.9 - 1_000);
  expect(answered).toBe(false);
  await advance(relay, 1_000);
  const { result } = await call;
  expect(textOf(result)).toMatch(/^approval_denied: [^]*Nothing ran/);
  expect(progressIn(await call)[0]).toContain('asks a person to approve the call');
  const { commands } = await relay.data('{ commands { nodes { outcome execution } } }');
  expect(commands.nodes).toEqual([{ outcome: 'FAILED', execution: 'REFUSED_BY_CLIENT' }]);
  await advance(relay, RESPOND_MS);
  expect(ran).toBe(0);
});
