/** Tests how repeated calls of callers without command ids are told from calls that are meant to run again. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { createMemorySpill } from '../../src/backends/spill.ts';
import type { RepeatDecision, RepeatableCall } from '../../src/core/calls/repeats.ts';
import { silentLog } from '../../src/core/ports.ts';
import { trustJson } from '../../src/core/json.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { connect, startCore, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const CALL: RepeatableCall = {
  ...{ userId: 'alice', clientId: 'tab', action: 'open', contextId: null },
  ...{ params: trustJson('{"a":1,"b":2}'), repeatOf: null, harmless: false },
};

type Over = Partial<RepeatableCall>;

function decide({ core }: Pick<TestCore, 'core'>, over: Over = {}): Promise<RepeatDecision> {
  return core.rpc.repeats.decide(alice, { ...CALL, ...over });
}

/** Decides, and invokes if the call is to run or to attach. Returns the id of its command. */
async function call({ core }: Pick<TestCore, 'core'>, over: Over = {}): Promise<string> {
  const decision = await decide({ core }, over);
  if (decision.kind !== 'new' && decision.kind !== 'attach') throw new Error(decision.kind);
  const { commandId } = decision;
  const { params } = { ...CALL, ...over };
  const invoked = await core.rpc.invoke(alice, {
    ...CALL,
    params,
    commandId,
    callerLabel: { kind: 'mcp', name: 'test', version: null },
    waitFor: 'admitted',
    respondWithinMs: 1_000,
  });
  if (invoked.kind === 'refused') throw new Error(invoked.code);
  await settle();
  return commandId;
}

async function complete(client: TestClient, commandId: string): Promise<void> {
  await client.session.end(commandId, { kind: 'result', payload: trustJson('1'), error: null, refused: false });
}

const key = (commandId: string) => ({ userId: 'alice', clientId: 'tab', commandId });
const answered = ({ core }: TestCore, commandId: string) => core.rpc.repeats.answered(alice, key(commandId));

describe('an identical call', () => {
  it('attaches while the earlier one runs, and after its end until its answer is known to have arrived', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: first });
    await answered(relay, first);
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: first });
    await complete(client, first);
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: first });
    await answered(relay, first);
    const second = await call(relay);
    expect(second).not.toBe(first);
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: second });
    expect(client.sent).toHaveLength(2);
  });

  it('gets the same id as one that is decided at the same time', async () => {
    await using relay = await testCore();
    const both = await Promise.all([decide(relay), decide(relay)]);
    expect(both[0]).toEqual(both[1]);
  });

  it('runs again ten minutes after the end, because no agent waits that long for a lost answer', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    await relay.clock.advance(600_000);
    expect(await decide(relay)).toMatchObject({ kind: 'attach' });
    await relay.clock.advance(1);
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });

  it('is told from others by requester, client, action, context and params, and the params by their meaning', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const first = await call(relay);
    const same: Over[] = [{ params: trustJson('{ "b": 2.0, "a": 1e0 }') }, { harmless: true }];
    for (const over of same) expect(await decide(relay, over)).toMatchObject({ kind: 'attach', commandId: first });
    const others: Over[] = [
      ...[{ params: trustJson('{"a":1,"b":3}') }, { params: null }, { action: 'close' }, { clientId: 'other' }],
      { contextId: 'tab-1' },
    ];
    for (const over of others) expect(await decide(relay, over)).toMatchObject({ kind: 'new' });
    const bob = relay.core.rpc.repeats.decide(user('bob'), { ...CALL, userId: 'bob' });
    expect(await bob).toMatchObject({ kind: 'new' });
    await expect(relay.core.rpc.repeats.decide(user('bob'), CALL)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('runs at once if it is proven that the earlier one did not', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    const error = { code: 'approval_denied', message: 'no' };
    await client.session.end(first, { kind: 'error', payload: null, error, refused: true });
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });
});

describe('an identical call after the record of the earlier one was reduced', () => {
  it('gets no answer twice, and runs again only if that does no harm', async () => {
    const bound = { guarantee: 1, total: 1 };
    await using relay = await testCore({ shares: createShares({ ended_records: bound }) });
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    await answered(relay, first);
    await complete(client, await call(relay, { params: trustJson('{"c":3}') }));
    const earlier = { commandId: first, command: null, mark: { outcome: 'completed' } };
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: first, earlier });
    expect(await decide(relay, { harmless: true })).toMatchObject({ kind: 'new' });
    expect(await decide(relay, { repeatOf: first })).toMatchObject({ kind: 'new' });
  });
});

describe('the id of a repeatable call', () => {
  it('is refused from callers that are no agents', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const { commandId } = (await decide(relay)) as { commandId: string };
    const asked = { ...CALL, commandId, waitFor: 'admitted' } as const;
    await expect(relay.core.rpc.invoke(alice, asked)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('reserved'),
    });
    expect(client.sent).toEqual([]);
    await call(relay);
    expect(client.sent).toHaveLength(1);
  });
});

describe('after an unknown outcome', () => {
  const unknown = async (relay: TestCore, over: Over = {}): Promise<string> => {
    const commandId = await call(relay, over);
    await relay.clock.advance(2_000);
    return commandId;
  };

  it('an identical call is refused until it names the earlier one, and then it runs', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await unknown(relay);
    expect(await decide(relay)).toMatchObject({ kind: 'refused', earlier: { commandId: first } });
    await answered(relay, first);
    expect(await decide(relay)).toMatchObject({ kind: 'refused' });
    const second = await call(relay, { repeatOf: first });
    expect(client.sent.map(({ command }) => command.commandId)).toEqual([first, second]);
    expect(await decide(relay, { repeatOf: first })).toMatchObject({ kind: 'attach', commandId: second });
    await relay.clock.advance(2_000);
    expect(await decide(relay, { repeatOf: first })).toMatchObject({ kind: 'refused', earlier: { commandId: second } });
    expect(await decide(relay, { repeatOf: second })).toMatchObject({ kind: 'new' });
  });

  it('an identical call runs if a second run does no harm', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    await unknown(relay);
    expect(await decide(relay, { harmless: true })).toMatchObject({ kind: 'new' });
  });

  it('a call that names what is no earlier call of its kind is told so', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const first = await unknown(relay);
    expect(await decide(relay, { repeatOf: 'c1' })).toEqual({ kind: 'foreign' });
    expect(await decide(relay, { repeatOf: first, params: null })).toEqual({ kind: 'foreign' });
  });

  it('naming a command that still runs does not start another', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const first = await call(relay);
    expect(await decide(relay, { repeatOf: first })).toMatchObject({ kind: 'attach', commandId: first });
  });

  it('it stays refused for most of an hour', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    await unknown(relay);
    await relay.clock.advance(49 * 60_000);
    expect(await decide(relay)).toMatchObject({ kind: 'refused' });
  });

  it('1,000 of them are each refused once more without being named, and run once each', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const params = (n: number) => trustJson(`{"n":${n}}`);
    for (let n = 0; n < 1_000; n++) {
      await call(relay, { params: params(n) });
      if (n % 20 !== 19) continue;
      await relay.clock.advance(2_000);
      await client.session.alive();
    }
    for (let n = 0; n < 1_000; n++)
      expect(await decide(relay, { params: params(n) })).toMatchObject({ kind: 'refused' });
    expect(client.sent).toHaveLength(1_000);
  }, 120_000);
});

describe('the latest of many identical calls', () => {
  it('is found however many there were and whenever they ran', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 1, maxLength: 40 }),
        async (pauses) => {
          await using relay = await testCore();
          const client = await connect(relay.core, alice);
          const ids: string[] = [];
          for (const pause of pauses) {
            await relay.clock.advance(pause);
            await client.session.alive();
            const commandId = await call(relay);
            ids.push(commandId);
            await complete(client, commandId);
            await answered(relay, commandId);
          }
          expect(new Set(ids).size).toBe(pauses.length);
          const latest = await decide(relay, { repeatOf: ids.at(-1) ?? null });
          expect(latest).toMatchObject({ kind: 'new' });
          expect(ids).not.toContain(latest.kind === 'new' ? latest.commandId : null);
        },
      ),
      { numRuns: 20 },
    );
  }, 120_000);

  it('is found with a short idempotency window, whose early records are gone', async () => {
    const clock = new FakeClock();
    const shares = createShares();
    const { sha256 } = createCrypto('test');
    const backend = createMemoryBackend({ clock, log: silentLog, sha256, shares, idempotencyWindowMs: 60_000 });
    const spill = createMemorySpill(clock, createCrypto('test'));
    const core = await startCore({ shares }, { backend, clock, counts: new Map(), spill });
    const client = await connect(core, alice);
    const ids = new Set<string>();
    for (let n = 0; n < 20; n++) {
      const commandId = await call({ core });
      expect(await decide({ core })).toMatchObject({ kind: 'attach', commandId });
      await complete(client, commandId);
      await core.rpc.repeats.answered(alice, key(commandId));
      ids.add(commandId);
      await clock.advance(9_000);
      await client.session.alive();
    }
    expect(ids.size).toBe(20);
    await core.close();
  });
});
