/** Tests how calls of agents are judged by the earlier equal ones that the store and the processes know. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { OwedAnswer } from '../../src/core/calls/owed-answers.ts';
import type { Entered, RepeatDecision, RepeatableCall } from '../../src/core/calls/repeats.ts';
import { OWED_BY_NOBODY } from '../../src/core/commands/command.ts';
import { silentLog } from '../../src/core/ports.ts';
import { trustJson } from '../../src/core/json.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { connect, startCore, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const CALL: RepeatableCall = {
  ...{ userId: 'alice', clientId: 'tab', action: 'open', contextId: null, agent: 'session s1' },
  ...{ params: trustJson('{"a":1,"b":2}'), repeatOf: null, harmless: false },
};

type Over = Partial<RepeatableCall>;
type Parts = Pick<TestCore, 'core'>;
let requests = 0;

function begin({ core }: Parts, cancel: () => void = () => {}): OwedAnswer {
  return core.rpc.repeats.begin(alice, { session: 's1', requestId: ++requests }, cancel);
}

async function enter(parts: Parts, over: Over = {}, answer = begin(parts)): Promise<Entered> {
  return parts.core.rpc.repeats.enter(alice, { ...CALL, ...over }, answer);
}

/** Decides about a call that does not begin. */
async function decide(parts: Parts, over: Over = {}): Promise<RepeatDecision> {
  const answer = begin(parts);
  const { decision, leave } = await enter(parts, over, answer);
  await leave(false);
  answer.lost();
  answer.close();
  return decision;
}

/** A call that has begun: the id of its command, and what becomes of its answer. */
type Begun = { readonly id: string; readonly ran: boolean; readonly answer: OwedAnswer };

/** Makes a call as the bridge does: it runs, or takes over the answer of an earlier one. */
async function call({ core }: Parts, over: Over = {}): Promise<Begun> {
  const answer = begin({ core });
  const { decision, leave } = await enter({ core }, over, answer);
  if (decision.kind !== 'new' && decision.kind !== 'attach') {
    await leave(false);
    throw new Error(decision.kind);
  }
  const { commandId } = decision;
  if (commandId !== null) answer.owes(key(commandId));
  const { params, agent: _agent, repeatOf: _repeatOf, harmless: _harmless, ...asked } = { ...CALL, ...over };
  if (decision.kind === 'attach') {
    await leave(true);
    return { id: decision.commandId, ran: false, answer };
  }
  const invoked = await core.rpc.invoke(alice, {
    ...asked,
    ...{ params, commandId, owedBy: commandId === null ? undefined : answer.token },
    callerLabel: { kind: 'mcp', name: 'test', version: null },
    waitFor: 'admitted',
    respondWithinMs: 1_000,
  });
  if (invoked.kind === 'refused' || invoked.kind === 'ended') throw new Error(invoked.kind);
  await leave(true);
  await settle();
  return { id: invoked.command.commandId, ran: true, answer };
}

async function complete(client: TestClient, { id }: Begun): Promise<void> {
  await client.session.end(id, { kind: 'result', payload: trustJson('1'), error: null, refused: false });
}

/** The whole answer of a call, whose command has ended, is written. */
function write({ answer }: Begun): void {
  answer.written(true);
  answer.close();
}

function lose({ answer }: Begun): void {
  answer.lost();
  answer.close();
}

const key = (commandId: string) => ({ userId: 'alice', clientId: 'tab', commandId });

describe('a call without evidence that an earlier answer was lost', () => {
  it('runs while an equal one runs, and at any time after its end', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    const second = await call(relay);
    expect([first.ran, second.ran]).toEqual([true, true]);
    expect(second.id).not.toBe(first.id);
    await complete(client, first);
    expect(await decide(relay)).toMatchObject({ kind: 'new', ranBeside: null });
    write(first);
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
    await complete(client, second);
    write(second);
    for (const ms of [0, 1_000, 9_000, 50_000, 540_000]) {
      await relay.clock.advance(ms);
      expect(await decide(relay)).toMatchObject({ kind: 'new', ranBeside: null });
    }
  });

  it('runs as often as it is made, side by side or one after another', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const beside = await Promise.all(Array.from({ length: 30 }, () => call(relay)));
    for (const one of beside) await complete(client, one);
    beside.forEach(write);
    for (let n = 0; n < 30; n++) {
      const one = await call(relay);
      await complete(client, one);
      write(one);
    }
    expect(client.sent).toHaveLength(60);
  });

  it('names an equal one that still runs after ten seconds', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const { clock } = relay;
    const answer = begin(relay);
    const { decision, leave } = await enter(relay, {}, answer);
    const { commandId } = decision as Extract<RepeatDecision, { kind: 'new' }>;
    answer.owes(key(commandId ?? ''));
    const { agent: _a, repeatOf: _r, harmless: _h, ...asked } = CALL;
    const label = { kind: 'mcp', name: 'test', version: null } as const;
    const more = { waitFor: 'admitted', respondWithinMs: 60_000, owedBy: answer.token, callerLabel: label } as const;
    await relay.core.rpc.invoke(alice, { ...asked, commandId, ...more });
    await leave(true);
    await clock.advance(10_000);
    expect(await decide(relay)).toMatchObject({ kind: 'new', ranBeside: null });
    await clock.advance(1_000);
    expect(await decide(relay)).toMatchObject({ kind: 'new', ranBeside: { commandId } });
    await client.session.alive();
    await clock.advance(20_000);
    await client.session.end(commandId ?? '', { kind: 'result', payload: null, error: null, refused: false });
    answer.written(true);
    expect(await decide(relay)).toMatchObject({
      kind: 'new',
      ranBeside: { commandId, command: { outcome: 'completed' } },
    });
  });

  it('concerns the calls of its own session alone', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const lost = await call(relay);
    lose(lost);
    expect(await decide(relay, { agent: 'session s2' })).toMatchObject({ kind: 'new' });
    expect(await decide(relay, { agent: 'program host' })).toMatchObject({ kind: 'new' });
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: lost.id });
    expect(client.sent).toHaveLength(1);
  });

  it('is told from others by client, action, context and params, and the params by their meaning', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const lost = await call(relay);
    lose(lost);
    const others: Over[] = [
      ...[{ params: trustJson('{"a":1,"b":3}') }, { params: null }, { action: 'close' }, { clientId: 'other' }],
      { contextId: 'tab-1' },
    ];
    for (const over of others) expect(await decide(relay, over)).toMatchObject({ kind: 'new' });
    const same = { params: trustJson('{ "b": 2.0, "a": 1e0 }') };
    expect(await decide(relay, same)).toMatchObject({ kind: 'attach', commandId: lost.id });
    const bob = { ...CALL, userId: 'bob' };
    expect(await relay.core.rpc.repeats.enter(user('bob'), bob, begin(relay))).toMatchObject({
      decision: { kind: 'new' },
    });
    await expect(relay.core.rpc.repeats.enter(user('bob'), CALL, begin(relay))).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('a call after the answer of an equal one was lost', () => {
  it('waits for it while it runs, gets its end afterwards, and is a new one once that was written', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    lose(first);
    const repeat = await call(relay);
    expect(repeat).toMatchObject({ id: first.id, ran: false });
    await complete(client, first);
    lose(repeat);
    const again = await call(relay);
    expect(again).toMatchObject({ id: first.id, ran: false });
    write(again);
    expect(await call(relay)).toMatchObject({ ran: true });
    expect(client.sent).toHaveLength(2);
  });

  it('is one repeat: what comes beside it is another call', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    lose(await call(relay));
    const [repeat, other] = await Promise.all([call(relay), call(relay)]);
    expect([repeat.ran, other.ran]).toEqual([false, true]);
    expect(client.sent).toHaveLength(2);
  });

  it('five lost calls are each repeated once', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const lost = await Promise.all(Array.from({ length: 5 }, () => call(relay)));
    for (const one of lost.slice(0, 3)) await complete(client, one);
    lost.forEach(lose);
    const repeats = await Promise.all(Array.from({ length: 5 }, () => call(relay)));
    expect(new Set(repeats.map(({ id }) => id))).toEqual(new Set(lost.map(({ id }) => id)));
    expect(client.sent).toHaveLength(5);
    expect(await call(relay)).toMatchObject({ ran: true });
  });

  it('a reset takes back that the answer was written, until an equal call was judged', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    first.answer.written(true);
    first.answer.lost();
    const repeat = await call(relay);
    expect(repeat).toMatchObject({ id: first.id, ran: false });
    repeat.answer.written(true);
    expect(await call(relay)).toMatchObject({ ran: true });
    repeat.answer.lost();
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });

  it('runs ten minutes after the end', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    lose(first);
    await relay.clock.advance(600_000);
    expect(await decide(relay)).toMatchObject({ kind: 'attach' });
    await relay.clock.advance(1);
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });

  it('runs if it is proven that the earlier one did not', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    const error = { code: 'approval_denied', message: 'no' };
    await client.session.end(first.id, { kind: 'error', payload: null, error, refused: true });
    lose(first);
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });

  it('runs if a second run does no harm, or if it names the lost one, whose evidence ends with that', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    lose(first);
    expect(await decide(relay, { harmless: true })).toEqual({ kind: 'new', commandId: null, ranBeside: null });
    const named = await call(relay, { repeatOf: first.id });
    expect(named.ran).toBe(true);
    await complete(client, named);
    write(named);
    expect(await call(relay)).toMatchObject({ ran: true });
  });

  it('gets no second run for a name while the lost one runs', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const first = await call(relay);
    lose(first);
    expect(await decide(relay, { repeatOf: first.id })).toMatchObject({ kind: 'attach', commandId: first.id });
  });

  it('may name an earlier call of another session, but none that asked for something else', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    const other = await call(relay, { agent: 'session s2' });
    expect(await decide(relay, { repeatOf: other.id })).toMatchObject({ kind: 'new' });
    expect(await decide(relay, { repeatOf: 'c1' })).toEqual({ kind: 'foreign' });
    expect(await decide(relay, { repeatOf: other.id, params: null })).toEqual({ kind: 'foreign' });
  });

  it('runs if only a mark is left of the earlier one', async () => {
    const bound = { guarantee: 1, total: 1 };
    await using relay = await testCore({ shares: createShares({ ended_records: bound }) });
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    lose(first);
    await complete(client, await call(relay, { params: trustJson('{"c":3}') }));
    expect(await decide(relay)).toMatchObject({ kind: 'new' });
  });
});

describe('the id of a repeatable call', () => {
  it('is refused from callers that are no agents', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const { commandId } = (await decide(relay)) as { commandId: string };
    const { agent: _a, repeatOf: _r, harmless: _h, ...asked } = CALL;
    await expect(relay.core.rpc.invoke(alice, { ...asked, commandId, waitFor: 'admitted' })).rejects.toMatchObject({
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
    const one = await call(relay, over);
    await relay.clock.advance(2_000);
    write(one);
    return one.id;
  };

  it('an equal call is refused until it names the earlier one, and then it runs', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await unknown(relay);
    expect(await decide(relay)).toMatchObject({ kind: 'refused', earlier: { commandId: first } });
    await relay.core.rpc.repeats.answered(alice, key(first));
    expect(await decide(relay)).toMatchObject({ kind: 'refused' });
    const second = await call(relay, { repeatOf: first });
    expect(client.sent.map(({ command }) => command.commandId)).toEqual([first, second.id]);
    await relay.clock.advance(2_000);
    expect(await decide(relay, { repeatOf: first })).toMatchObject({
      kind: 'refused',
      earlier: { commandId: second.id },
    });
    expect(await decide(relay, { repeatOf: second.id })).toMatchObject({ kind: 'new' });
  });

  it('an equal call runs if a second run does no harm, and so does one of another session', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    await unknown(relay);
    expect(await decide(relay, { harmless: true })).toMatchObject({ kind: 'new' });
    expect(await decide(relay, { agent: 'session s2' })).toMatchObject({ kind: 'new' });
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
  });
});

describe('for any sequence of calls', () => {
  /**
   * What happens next: a call begins; one that began ends, its answer is written or lost; time passes. Numbers choose
   * among the calls.
   */
  const step = fc.oneof(
    ...(['call', 'complete', 'write', 'lose'] as const).map((kind) =>
      fc.record({ kind: fc.constant(kind), n: fc.nat(5) }),
    ),
    fc.record({ kind: fc.constant('pass' as const), n: fc.constantFrom(1, 5_000, 700_000) }),
  );

  it('each wanted call runs once, and no repeat runs', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        await using relay = await testCore();
        const client = await connect(relay.core, alice);
        const open: Begun[] = [];
        const running = new Set<string>();
        const endedAt = new Map<string, number>();
        const lost: string[] = [];
        let wanted = 0;
        for (const { kind, n } of steps) {
          const one = open[n % Math.max(1, open.length)];
          if (kind === 'pass') {
            await relay.clock.advance(Math.min(n, 700));
            await client.session.alive();
            if (n > 700 && running.size === 0) await relay.clock.advance(n);
            await client.session.alive();
          } else if (kind === 'call') {
            const now = relay.clock.now();
            const known = lost.filter((id) => running.has(id) || now - (endedAt.get(id) ?? now) <= 600_000);
            const unknown = [...running].some((id) => relay.core && endedAt.has(id));
            expect(unknown).toBe(false);
            const made = await call(relay).catch((error: Error) => error);
            if (made instanceof Error) {
              // A command that ran into its deadline: the rest of the sequence is another test.
              expect(made.message).toBe('refused');
              break;
            }
            expect(made.ran).toBe(known.length === 0);
            if (made.ran) {
              wanted++;
              running.add(made.id);
            } else lost.splice(lost.indexOf(made.id), 1);
            open.push(made);
          } else if (one && kind === 'complete' && running.delete(one.id)) {
            await complete(client, one);
            endedAt.set(one.id, relay.clock.now());
          } else if (one && kind === 'write' && endedAt.has(one.id)) {
            write(one);
            open.splice(open.indexOf(one), 1);
          } else if (one && kind === 'lose') {
            lose(one);
            lost.push(one.id);
            open.splice(open.indexOf(one), 1);
          }
        }
        expect(client.sent).toHaveLength(wanted);
      }),
      { numRuns: 100 },
    );
  });
});

describe('the latest of many equal calls', () => {
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
            const one = await call(relay);
            ids.push(one.id);
            await complete(client, one);
            write(one);
          }
          expect(new Set(ids).size).toBe(pauses.length);
          expect(client.sent).toHaveLength(pauses.length);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('is found with a short idempotency window, whose early records are gone', async () => {
    const clock = new FakeClock();
    const shares = createShares();
    const { sha256 } = createCrypto('test');
    const backend = createMemoryBackend({
      markSecret: 'x',
      clock,
      log: silentLog,
      sha256,
      shares,
      idempotencyWindowMs: 60_000,
    });
    const spill = createMemorySpill(clock, createCrypto('test'));
    const core = await startCore({ shares }, { backend, clock, counts: new Map(), spill });
    const client = await connect(core, alice);
    const ids = new Set<string>();
    for (let n = 0; n < 20; n++) {
      const one = await call({ core });
      await complete(client, one);
      lose(one);
      const repeat = await call({ core });
      expect(repeat).toMatchObject({ id: one.id, ran: false });
      write(repeat);
      ids.add(one.id);
      await clock.advance(9_000);
      await client.session.alive();
    }
    expect(ids.size).toBe(20);
    await core.close();
  });
});

describe('another process', () => {
  it('reads that an answer was lost before the store has confirmed that it was written', async () => {
    const confirmed = Promise.withResolvers<void>();
    await using relay = await testCore({
      wrap: (backend) => ({
        ...backend,
        commands: {
          ...backend.commands,
          // As with owners, what is decided can be read before it is recorded.
          async settle(command, settlement) {
            const result = await backend.commands.settle(command, settlement);
            if (settlement.kind === 'answered') await confirmed.promise;
            return result;
          },
        },
      }),
    });
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    const record = async () => (await relay.backend.commands.get([key(first.id)]))[0];
    first.answer.written(true);
    await settle();
    expect(await record()).toMatchObject({ answeredAt: expect.any(Number) });
    first.answer.lost();
    await settle();
    expect(await record()).toMatchObject({ owedBy: OWED_BY_NOBODY });
    expect(await record()).not.toHaveProperty('answeredAt');
    confirmed.resolve();
    await settle();
    expect(await decide(relay)).toMatchObject({ kind: 'attach', commandId: first.id });
  });

  it('takes an answer that an earlier process owed for lost, and finds the calls without what that remembered', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const first = await call(relay);
    await complete(client, first);
    const { core: later } = relay;
    const [record] = await relay.backend.commands.get([key(first.id)]);
    await relay.backend.commands.settle(key(first.id), {
      ...{ kind: 'owed', by: 'an-earlier-node/process.1', instead: record?.owedBy ?? '' },
    });
    first.answer.owes(null);
    expect(await call({ core: later })).toMatchObject({ id: first.id, ran: false });
  });
});
