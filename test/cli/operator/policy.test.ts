/** Tests the commands that check a policy file, and that show which recorded calls it would refuse. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { operatorOf, type RunOperator } from './kit/operator.ts';

let folder: string;
let relay: RealRelay;
let desk: Runtime;
const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);

/** Writes a policy file and returns its path. */
function put(content: unknown): string {
  const path = join(folder, 'policy.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'callboard-policy-'));
  relay = await startRealRelay({});
  const token = await relay.token('alice', 'connect');
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  for (const name of ['notes.add', 'notes.wipe']) desk.handle(name, {}, () => ({}));
  desk.connect();
  await desk.ready();
  const alice = { env: { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') } };
  for (const id of ['a1', 'a2', 'a3']) await run(['call', 'alice/desk', 'notes.add', '--id', id], alice);
  await run(['call', 'alice/desk', 'notes.wipe', '--id', 'w1'], alice);
  await run(['call', 'alice/desk', 'notes.wipe', '--id', 'w2']);
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

it('checks a file without a relay, and names each fault in it', async () => {
  const without = { env: { CALLBOARD_URL: '', CALLBOARD_TOKEN: '' } };
  const good = await run(
    ['policy', 'check', put({ user_capacity: 3, rules: [{ effect: 'deny' }] }), '-o', 'json'],
    without,
  );
  expect([good.code, JSON.parse(good.out)]).toMatchObject([0, { rules: 1, scopes: 0, rates: 0, user_capacity: 3 }]);
  const wrong = await run(['policy', 'check', put({ user_capacity: 'x', rules: [{ effect: 'maybe' }] })], without);
  expect([wrong.code, wrong.out]).toEqual([2, '']);
  expect(wrong.err).toMatch(/policy\.json: rules\[0\]\.effect: /);
  expect(wrong.err).toMatch(/policy\.json: user_capacity: /);
  expect(await run(['policy', 'check', put('not json')], without)).toMatchObject({ code: 2 });
  expect(await run(['policy', 'check', join(folder, 'absent')], without)).toMatchObject({ code: 2 });
});

it('shows which calls of the last hour would be refused, by which rule, and counts the others', async () => {
  const rules = [
    { name: 'no-wipe', effect: 'deny', caller: 'invoke', action: '*.wipe' },
    { name: 'hosts', effect: 'deny', caller: 'host', action: '*.add' },
  ];
  const { out, err, code } = await run(['policy', 'diff', put({ rules }), '-o', 'json']);
  const alice = { caller_kind: 'user', caller: 'alice', user_id: 'alice' };
  const [first, second, ...others] = JSON.parse(out).items;
  // Whether a token had the scope `host` is in no record.
  expect(first).toMatchObject({ verdict: 'may_refuse', by: 'hosts', ...alice, action: 'notes.add', calls: 3 });
  expect(second).toMatchObject({ verdict: 'refuse', by: 'no-wipe', ...alice, action: 'notes.wipe', calls: 1 });
  expect([others, code]).toEqual([[], 0]);
  expect(err).toContain('4 of 5 recorded calls');
});

it('shows calls beyond a rate, in the order of their admission', async () => {
  const rates = [{ name: 'slow', action: 'notes.add', burst: 2, per_second: 0.001 }];
  const { out } = await run(['policy', 'diff', put({ rates }), '-o', 'json']);
  expect(JSON.parse(out).items).toMatchObject([{ verdict: 'rate_limited', by: 'slow', action: 'notes.add', calls: 1 }]);
});

it('shows nothing for a file that restricts nothing', async () => {
  const { out, err } = await run(['policy', 'diff', put({}), '-o', 'ids']);
  expect(out).toBe('');
  expect(err).toContain('0 of 5 recorded calls');
});
