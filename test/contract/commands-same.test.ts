/** Tests that memory and Redis give the same answers, records, rows, counts and pages after any sequence of acts. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Backend } from '../../src/core/backend.ts';
import {
  ANY_COMMAND,
  type AdmitRequest,
  type Binding,
  type MailboxRow,
  type RebindResult,
} from '../../src/core/commands/stores.ts';
import { commandKeyText, type ClientKey, type CommandKey } from '../../src/core/ids.ts';
import { canonicalJson, toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { admission, ending, keyFor, openNode, type Bench } from './kit/bench.ts';
import { redisBench } from './kit/redis-bench.ts';

/** The clients: two of one user, and one of a user who shares a scope with the first. */
const CLIENTS: readonly ClientKey[] = [
  { userId: 'alice', clientId: 'tab' },
  { userId: 'alice', clientId: 'phone' },
  { userId: 'bob', clientId: 'tab' },
];
const NODES = ['n1', 'n2'] as const;
const PAGE = { first: 100, after: null } as const;
const ANY_MESSAGE = { afterTime: null, beforeTime: null, kinds: null };
const RUNS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 12);

/** What a sequence of acts goes by; the same for both stores. */
type State = {
  readonly links: Map<number, Binding>;
  /** The waits that were asked for, in order. */
  readonly waits: { readonly key: CommandKey; readonly rpcId: string }[];
  /** The commands that were asked for, in order. */
  readonly keys: CommandKey[];
  acts: number;
};
type Act = (backend: Backend) => unknown;
type Value<A> = A extends fc.Arbitrary<infer V> ? V : never;

const client = fc.nat({ max: CLIENTS.length - 1 });
const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const node = fc.constantFrom('n1', ...NODES);
const instance = fc.constantFrom('i1', 'i1', 'i2');
const waitFor = fc.constantFrom('completed', 'completed', 'acknowledged', 'admitted');

function keyOf(at: number, commandId: string) {
  return keyFor(commandId, CLIENTS[at]);
}

const admit = fc.record({
  do: fc.constant('admit' as const),
  client,
  name,
  node,
  waitFor,
  connect: fc.constantFrom(0, 3_000),
  named: fc.constantFrom(null, null, null, 'i1'),
  chosen: fc.boolean(),
  digest: fc.constantFrom('d1', 'd1', 'd2'),
  limit: fc.constantFrom(100, 100, 100, 3),
  shared: fc.constantFrom(false, false, false, true),
  params: fc.constantFrom(null, '{"n":1}', JSON.stringify('x'.repeat(700))),
  claim: fc.boolean(),
});

function admitting(given: Value<typeof admit>, state: State): Act {
  const { userId } = CLIENTS[given.client] ?? { userId: '' };
  const number = state.acts++;
  const binding = state.links.get(given.client);
  const params = given.params === null ? null : toJson(JSON.parse(given.params));
  const request: AdmitRequest = admission(given.chosen ? given.name : `made-${number}`, {
    ...CLIENTS[given.client],
    chosenId: given.chosen,
    digest: given.chosen ? given.digest : '',
    scopeId: given.shared ? 'team' : userId,
    scopeLimit: given.limit,
    memberLimit: given.shared ? 2 : null,
    namedInstanceId: given.named,
    params,
    kept: { payload: params, spill: null },
    connectWithinMs: given.connect,
    waiter: { rpcId: `r${number}`, callerNodeId: given.node, waitFor: given.waitFor, withinMs: null },
    claim: given.claim && binding?.nodeId === given.node ? { binding, attempt: `x${number}` } : null,
  });
  const key = keyOf(given.client, request.commandId);
  state.keys.push(key);
  state.waits.push({ key, rpcId: request.waiter.rpcId });
  return async ({ commands }) => {
    const { answer, ...state } = await commands.preview(request);
    // Over Redis a preview reads no result.
    const asked = answer.kind === 'attached' ? { ...answer, result: null } : answer;
    return [asked, state, await commands.admit(request)];
  };
}

const onCommand = fc.record({
  do: fc.constant('command' as const),
  client,
  /** Which of the commands that were admitted before, the latest first. */
  which: fc.nat({ max: 5 }),
  instance,
  node,
  waitFor,
  act: fc.constantFrom(
    ...(['dispatch', 'dispatch', 'dispatch', 'ack', 'progress', 'result', 'result', 'large'] as const),
    ...(['error', 'refused', 'cancelled', 'cancel', 'expire', 'give_up', 'attach', 'remove'] as const),
  ),
});

function changing({ act, ...given }: Value<typeof onCommand>, state: State): Act {
  const key = state.keys.at(-1 - given.which) ?? keyOf(given.client, 'none');
  const at = CLIENTS.findIndex(({ userId, clientId }) => userId === key.userId && clientId === key.clientId);
  const number = state.acts++;
  const binding = state.links.get(at) ?? { nodeId: 'n1', instanceId: 'i1', epoch: 0 };
  const { instance: instanceId } = given;
  const payload = toJson({ n: number % 3 });
  const error = { code: 'handler_failed', message: 'no' };
  const waiter = { rpcId: `w${number}`, callerNodeId: given.node, waitFor: given.waitFor, withinMs: 5_000 } as const;
  const over = state.waits[number % Math.max(1, state.waits.length)];
  if (act === 'attach') state.waits.push({ key, rpcId: waiter.rpcId });
  return ({ commands, waiters }) => {
    switch (act) {
      case 'dispatch':
        return commands.dispatch(key, binding, `x${number}`);
      case 'ack':
        return commands.report(key, { instanceId, kind: 'ack', payload: null, kept: null });
      case 'progress':
        return commands.report(key, { instanceId, kind: 'progress', payload, kept: { payload, spill: null } });
      case 'result':
        return commands.finish(key, ending({ instanceId, payload }));
      case 'large':
        return commands.finish(key, ending({ instanceId, payload: toJson('y'.repeat(20_000)) }));
      case 'error':
      case 'refused':
        return commands.finish(
          key,
          ending({ instanceId, kind: 'error', payload: null, error, refused: act === 'refused' }),
        );
      case 'cancelled':
        return commands.finish(key, ending({ instanceId, kind: 'cancelled', payload: null }));
      case 'cancel':
        return commands.settle(key, { kind: 'cancel', reason: number % 2 === 0 ? null : 'enough', by: 'test' });
      case 'expire':
        return commands.settle(key, { kind: 'expire' });
      case 'give_up':
        return commands.settle(key, { kind: 'give_up', code: 'node_lost', instanceId });
      case 'attach':
        return waiters.attach(key, waiter);
      case 'remove':
        return over && waiters.remove(over.key, over.rpcId);
    }
  };
}

const link = fc.record({
  do: fc.constant('link' as const),
  client,
  node,
  instance,
  move: fc.constantFrom('up' as const, 'up' as const, 'again' as const, 'down' as const, 'old' as const),
});

function moving({ client: at, node: nodeId, instance: instanceId, move }: Value<typeof link>, state: State): Act {
  const key = CLIENTS[at] ?? { userId: '', clientId: '' };
  const bound = state.links.get(at);
  const up = { nodeId, instanceId, epoch: (bound?.epoch ?? 0) + 1 };
  if (move === 'up' || !bound) {
    state.links.set(at, up);
    return ({ commands }) => commands.rebind(key, up, 'up');
  }
  if (move === 'old') return ({ commands }) => commands.rebind(key, { ...up, epoch: bound.epoch - 1 }, 'up');
  return ({ commands }) => commands.rebind(key, bound, move);
}

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: admit },
    { weight: 10, arbitrary: onCommand },
    { weight: 3, arbitrary: link },
    { weight: 2, arbitrary: fc.constantFrom(1, 400, 1_500, 3_000, 31_000) },
  ),
  { minLength: 5, maxLength: 40, size: 'max' },
);

/** Every sequence begins with links, so that most commands can be dispatched. */
const UP = CLIENTS.map(
  (_, at) => ({ do: 'link', client: at, node: NODES[at % 2] ?? 'n1', instance: 'i1', move: 'up' }) as const,
);

/** A store under test, with the mailboxes of its nodes. */
type Side = Bench & { readonly take: () => Promise<readonly (readonly MailboxRow[])[]> };

async function sideOf(bench: Bench): Promise<Side> {
  const nodes: Awaited<ReturnType<typeof openNode>>[] = [];
  for (const nodeId of NODES) nodes.push(await openNode(bench, nodeId));
  const take = async () => {
    await bench.advance(0);
    return nodes.map(({ rows }) => rows.splice(0));
  };
  return { ...bench, take };
}

function memory(): Bench {
  const clock = new FakeClock();
  const backend = createMemoryBackend({ clock, log: silentLog, sha256: createCrypto('test').sha256 });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    close: async () => void (await backend.close()),
  };
}

/** The rows of a mailbox as comparable texts. Replies may come before other rows of the same acts, and in any order. */
function comparable(rows: readonly MailboxRow[]): readonly string[] {
  return rows.map((row) => canonicalJson(row)).sort();
}

/** Returns everything that the ports show of commands. Positions are those of each store, so they are left out. */
async function shown({ backend, take }: Side): Promise<unknown> {
  const { inspector, commands, waiters, history, dedup } = backend;
  const mailboxes = (await take()).map(comparable);
  const listed = (await inspector.list(ANY_COMMAND, PAGE)).rows.map(({ row }) => row);
  const scopes = (await inspector.scopes(PAGE)).rows.map(({ row }) => ({
    ...row,
    holders: row.holders.map(({ commandId }) => commandId).sort(),
  }));
  const waits = await waiters.ofCommands(listed);
  const streams = [];
  for (const { userId, clientId } of CLIENTS) {
    const found = await history.messages(userId, `clients/${clientId}`, ANY_MESSAGE, PAGE);
    // Each store numbers a new stream from another `seq`.
    const first = found?.rows[0]?.row.seq ?? 0;
    streams.push(found?.rows.map(({ row }) => ({ ...row, seq: row.seq - first })) ?? null);
  }
  return {
    mailboxes,
    listed,
    results: await Promise.all(listed.map((command) => commands.result(command))),
    live: await Promise.all(CLIENTS.map(async (key) => [...(await commands.live(key))].sort(byKey))),
    loads: await commands.loads(CLIENTS),
    scopes,
    waits: waits.map((rows) => rows.map(({ waiter }) => waiter)),
    streams,
    sample: (await inspector.summary()).sampleSize,
    due: [...(await backend.nodes.due(100))].sort(byKey),
    dedup: { ...(await dedup.stats(3_600)), liveKeys: null },
  };
}

/** An answer, with the running commands of a link in one order: no caller depends on theirs. */
function sorted(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('unfinished' in answer)) return answer;
  const { unfinished, orphaned } = answer as RebindResult;
  return { ...answer, unfinished: unfinished.toSorted(byKey), orphaned: orphaned.toSorted(byKey) };
}

function byKey(a: CommandKey, b: CommandKey): number {
  return commandKeyText(a) < commandKeyText(b) ? -1 : 1;
}

describe('memory and Redis', () => {
  const open: Bench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });

  const ways = [false, true];
  it.each(ways)(
    'show the same after each act (each act decided on its own: %s)',
    { timeout: 600_000 },
    async (careful) => {
      const property = fc.asyncProperty(steps, async (sequence) => {
        const sides = [await sideOf(memory()), await sideOf(await redisBench({ partitions: 1, careful }))] as const;
        open.push(...sides);
        const state: State = { links: new Map(), waits: [], keys: [], acts: 0 };
        for (const step of [...UP, ...sequence]) {
          if (typeof step === 'number') for (const side of sides) await side.advance(step);
          else {
            const act =
              step.do === 'admit'
                ? admitting(step, state)
                : step.do === 'command'
                  ? changing(step, state)
                  : moving(step, state);
            const [inMemory, inRedis] = [await act(sides[0].backend), await act(sides[1].backend)];
            expect(sorted(inRedis)).toEqual(sorted(inMemory));
          }
          expect(await shown(sides[1])).toEqual(await shown(sides[0]));
        }
        for (const side of open.splice(0)) await side.close();
      });
      await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
    },
  );
});
