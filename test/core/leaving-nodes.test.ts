/** Tests a client that leaves one node while its successor connects to another one, over memory and over Redis. */
import { afterEach, describe, expect, it } from 'vitest';
import { REPLACED_GRACE_MS } from '../../src/core/limits.ts';
import { settle } from '../kit/clock.ts';
import { connect, user, type TestClient } from '../kit/core.ts';
import { STORES, type TwoNodes } from '../kit/two-nodes.ts';

const alice = user('alice');
const KEY = { userId: 'alice', clientId: 'tab' };
const unknown = { command: { outcome: 'outcome_unknown', reason: 'instance_replaced' } };

/** A client that left the first node while a command ran, and its successor on the second node. */
type Left = { readonly at: TwoNodes; readonly old: TestClient; readonly call: Promise<unknown> };

describe.each(Object.keys(STORES))('a client that leaves one node for another, over %s', (name) => {
  const open: TwoNodes[] = [];
  afterEach(async () => {
    for (const at of open.splice(0)) await at[Symbol.asyncDispose]();
  });
  async function left(): Promise<Left> {
    const at = await (STORES[name] ?? (() => Promise.reject(new Error(name))))();
    open.push(at);
    const [{ core: first }, { core: second }] = at.nodes;
    const old = await connect(first, alice, { instanceId: 'i1' });
    const call = first.rpc.invoke(alice, { ...KEY, action: 'open', params: null, commandId: 'c1' });
    await settle();
    expect(await old.session.leave()).toEqual(['c1']);
    await connect(second, alice, { instanceId: 'i2' });
    return { at, old, call };
  }

  it('lets the command that crossed end within its own time', async () => {
    const { at, old, call } = await left();
    for (let waited = 0; waited < 3 * REPLACED_GRACE_MS; waited += 1_000) await at.clock.advance(1_000);
    const [sent] = old.sent;
    if (!sent) throw new Error('The command was not sent.');
    expect(await old.result(sent.command)).toMatchObject({ kind: 'finished' });
    await at.clock.advance(0);
    expect(await call).toMatchObject({ command: { outcome: 'completed', attempts: 1 } });
  });

  it('ends the command within another grace period once the old socket is gone', async () => {
    const { at, old, call } = await left();
    await at.clock.advance(REPLACED_GRACE_MS);
    await old.session.closed('client_closed');
    await at.clock.advance(REPLACED_GRACE_MS);
    await at.clock.advance(0);
    expect(await call).toMatchObject(unknown);
  });
});
