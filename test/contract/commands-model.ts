/** Compares any CommandStore with a simple model, over random sequences of acts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { MailboxRow } from '../../src/core/commands/node-store.ts';
import type { Outcome } from '../../src/core/commands/command.ts';
import {
  CALLER,
  admission,
  ALICE,
  countWaits,
  ending,
  keyFor,
  openNode,
  type Bench,
  type MakeBench,
} from './kit/bench.ts';

type Step =
  | { readonly do: 'admit'; readonly id: string; readonly connect: number; readonly named: string | null }
  | { readonly do: 'bind'; readonly instance: string }
  | { readonly do: 'unbind' }
  | { readonly do: 'dispatch'; readonly id: string }
  | { readonly do: 'ack' | 'result' | 'error'; readonly id: string; readonly instance: string }
  | { readonly do: 'cancel' | 'expire'; readonly id: string }
  | { readonly do: 'wait'; readonly ms: number };

const id = fc.constantFrom('a', 'b');
const instance = fc.constantFrom('i1', 'i2');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('admit' as const),
    id,
    connect: fc.constantFrom(0, 2_000),
    named: fc.constantFrom(null, null, 'i1'),
  }),
  fc.record({ do: fc.constant('bind' as const), instance }),
  fc.record({ do: fc.constant('unbind' as const) }),
  fc.record({ do: fc.constant('dispatch' as const), id }),
  fc.record({ do: fc.constant('dispatch' as const), id }),
  fc.record({ do: fc.constantFrom('ack' as const, 'result' as const, 'error' as const), id, instance }),
  fc.record({ do: fc.constantFrom('cancel' as const, 'expire' as const), id }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(500, 2_000, 31_000) }),
);

/**
 * Observes the acts of a sequence: enough to notice a second run, a second end, a lost or repeated reply, or a
 * reservation that is never released.
 */
class Observer {
  readonly writes = new Map<string, number>();
  readonly outcomes = new Map<string, Outcome>();
  readonly replies = new Map<string, number>();
  readonly waiting = new Set<string>();
  readonly ids = new Set<string>();
  binding = { nodeId: 'n1', instanceId: 'i1', epoch: 0 };
  rpc = 0;
}

async function play(bench: Bench, see: Observer, move: Step): Promise<void> {
  const { commands } = bench.backend;
  switch (move.do) {
    case 'wait':
      return bench.advance(move.ms);
    case 'bind':
      see.binding = { nodeId: 'n1', instanceId: move.instance, epoch: see.binding.epoch + 1 };
      return void (await commands.rebind(ALICE, see.binding, 'up'));
    case 'unbind':
      return void (await commands.rebind(ALICE, see.binding, 'down'));
    case 'admit': {
      const rpcId = `r${see.rpc++}`;
      const waiter = { rpcId, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
      const request = admission(move.id, {
        connectWithinMs: move.connect,
        namedInstanceId: move.named,
        digest: `d${move.named}`,
        waiter,
      });
      const { answer } = await commands.preview(request);
      const result = await commands.admit(request);
      expect(answer.kind).toBe(result.kind);
      if (result.kind === 'refused') expect(answer).toEqual(result);
      if (result.kind === 'refused' || result.kind === 'ended' || result.kind === 'outdated') return;
      see.ids.add(move.id);
      if (result.command.outcome === null) see.waiting.add(rpcId);
      return;
    }
    case 'dispatch': {
      const result = await commands.dispatch(keyFor(move.id), see.binding);
      if (result.kind === 'dispatch') see.writes.set(move.id, (see.writes.get(move.id) ?? 0) + 1);
      return;
    }
    case 'ack':
      return void (await commands.report(keyFor(move.id), {
        instanceId: move.instance,
        kind: 'ack',
        payload: null,
        kept: null,
      }));
    case 'result':
    case 'error': {
      const error = move.do === 'error' ? { code: 'handler_failed', message: '' } : null;
      return void (await commands.finish(keyFor(move.id), ending({ instanceId: move.instance, kind: move.do, error })));
    }
    case 'cancel':
      return void (await commands.settle(keyFor(move.id), { kind: 'cancel', reason: null, by: 'test' }));
    case 'expire':
      return void (await commands.settle(keyFor(move.id), { kind: 'expire' }));
  }
}

async function judge(bench: Bench, see: Observer, rows: readonly MailboxRow[]): Promise<void> {
  let live = 0;
  const ids = [...see.ids].sort();
  const records = await bench.backend.commands.get(ids.map((commandId) => keyFor(commandId)));
  for (const [i, commandId] of ids.entries()) {
    const command = records[i];
    if (!command) throw new Error(`${commandId} was forgotten`);
    const before = see.outcomes.get(commandId);
    if (before) expect(command.outcome).toBe(before);
    if (command.outcome) see.outcomes.set(commandId, command.outcome);
    else live++;
    const writes = see.writes.get(commandId) ?? 0;
    expect(writes).toBeLessThanOrEqual(1);
    expect(command.attempts).toBe(writes);
    if (command.execution === 'not_written') expect(writes).toBe(0);
    if (command.outcome === 'expired') expect(writes).toBe(0);
    if (command.outcome === 'outcome_unknown' || command.outcome === 'completed') expect(writes).toBe(1);
  }
  for (const row of rows) {
    if (row.kind !== 'reply') continue;
    const { rpcId, command } = row.reply;
    see.replies.set(rpcId, (see.replies.get(rpcId) ?? 0) + 1);
    expect(see.replies.get(rpcId)).toBe(1);
    expect(see.waiting.delete(rpcId)).toBe(true);
    expect(command.outcome).toBe(see.outcomes.get(command.commandId));
  }
  const [waits] = await Promise.all([countWaits(bench.backend.waiters, ANY_WAIT), observe(bench, ids, live)]);
  expect(waits).toEqual({ count: see.waiting.size, complete: true });
  // Checks that there are as many reservations as live commands. A limit of that number admits no other command. A
  // limit of one more does.
  const waiter = { rpcId: 'probe', caller: CALLER, callerNodeId: 'n1', waitFor: 'admitted', withinMs: null } as const;
  const probe = { clientId: 'probe', connectWithinMs: 1, waiter };
  const commandId = `probe${see.rpc++}`;
  const { commands } = bench.backend;
  expect(await commands.admit(admission(commandId, { ...probe, scopeLimit: live }))).toEqual({
    kind: 'refused',
    code: 'capacity_exceeded',
  });
  expect(await commands.admit(admission(commandId, { ...probe, scopeLimit: live + 1 }))).toMatchObject({
    kind: 'admitted',
  });
  await commands.settle(keyFor(commandId, { userId: 'alice', clientId: 'probe' }), {
    kind: 'cancel',
    reason: null,
    by: 'probe',
  });
}

/** Checks that the inspector shows the actual state, and that reading does not change it. */
async function observe({ backend }: Bench, ids: readonly string[], live: number): Promise<void> {
  const { inspector, commands } = backend;
  const filter = { ...ANY_COMMAND, ...ALICE };
  const [{ rows }, scopes, summary] = await Promise.all([
    inspector.list(filter, { first: 100, after: null }),
    inspector.scopes({ first: 100, after: null }),
    inspector.summary(),
  ]);
  const records = await commands.get(ids.map((commandId) => keyFor(commandId)));
  expect(rows.map(({ row }) => row)).toEqual(records);
  const held = records.filter((command) => command?.outcome === null).map((command) => command?.commandId);
  expect(scopes.rows.map(({ row }) => [row.scopeId, row.reservedCommands])).toEqual(live > 0 ? [['alice', live]] : []);
  expect(scopes.rows.flatMap(({ row }) => row.holders.map(({ commandId }) => commandId)).sort()).toEqual(held);
  expect(summary.sampleSize).toBe(live);
}

/**
 * Defines the test that any sequence of acts keeps the invariants: at most one write, one end, one reply per waiter,
 * one reservation per live command.
 */
export function commandModel(name: string, make: MakeBench, runs = 300): void {
  describe(`the state machine on ${name}`, () => {
    it('keeps its invariants under any sequence of acts', async () => {
      const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
        const bench = await make();
        const node = await openNode(bench);
        const see = new Observer();
        for (const move of steps) {
          await play(bench, see, move);
          await judge(bench, see, await node.take());
        }
        await bench.close();
      });
      await fc.assert(property, { numRuns: runs });
    });
  });
}
