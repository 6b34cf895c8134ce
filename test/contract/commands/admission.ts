/** Defines the contract tests of CommandStore about the admission of commands. */
import { describe, expect, it } from 'vitest';
import { ANY_WAIT } from '../../../src/core/commands/waiter-store.ts';
import type { AdmitRequest } from '../../../src/core/commands/command-store.ts';
import { toJson } from '../../../src/core/json.ts';
import {
  CALLER,
  admission,
  ALICE,
  type Bench,
  BOUND,
  commandActs,
  countWaits,
  dispatched,
  ending,
  inWaves,
  keyFor,
  kinds,
  openNode,
  read,
} from '../kit/bench.ts';

/** Defines the tests of what an admission answers, writes and reserves. */
export function admissions(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('admission', () => {
    it('refuses an absent target without a connect budget and writes nothing', async () => {
      expect(await admit('c1')).toEqual({ kind: 'refused', code: 'not_connected' });
      expect(await bench().backend.commands.get([keyFor('c1')])).toEqual([null]);
      expect(await kinds(bench(), 'c1')).toEqual([]);
      expect(await countWaits(bench().backend.waiters, ANY_WAIT)).toEqual({ count: 0, complete: true });
    });

    it('parks a command whose caller allows time to connect, with both deadlines', async () => {
      const result = await admit('c1', { connectWithinMs: 5_000, respondWithinMs: 7_000 });
      expect(result).toMatchObject({
        kind: 'admitted',
        command: { stage: 'admitted', nodeId: null, queuedAt: null, execution: 'not_written' },
      });
      const command = await read(bench(), 'c1');
      expect([command.connectDeadline - command.admittedAt, command.deadline - command.admittedAt]).toEqual([
        5_000, 12_000,
      ]);
    });

    it('records who invoked the command first, and its trace context', async () => {
      await bind();
      const first = {
        caller: { kind: 'admin', name: 'ops' },
        traceFlags: '01',
        traceState: 'vendor=1,other=2',
        callSpan: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01',
      } as const;
      await admit('c1', first);
      await admit('c1', {
        caller: { kind: 'user', name: 'alice' },
        traceFlags: null,
        traceState: null,
        traceId: null,
        callSpan: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      });
      expect(await read(bench(), 'c1')).toMatchObject({ ...first, traceId: 't1', parentSpanId: 's1' });
      await admit('c2', { caller: { kind: 'grant', name: 'g1' }, traceFlags: null, traceState: null, callSpan: null });
      expect(await read(bench(), 'c2')).toMatchObject({
        caller: { kind: 'grant', name: 'g1' },
        traceFlags: null,
        traceState: null,
        callSpan: null,
      });
    });

    it('queues a command for a live client and posts it to its node once', async () => {
      const node = await openNode(bench());
      await bind();
      expect(await admit('c1')).toMatchObject({
        kind: 'admitted',
        command: { stage: 'queued', nodeId: 'n1', expectedInstanceId: 'i1' },
      });
      expect(await node.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
    });

    it('refuses a named instance that is not the live one', async () => {
      await bind();
      expect(await admit('c1', { namedInstanceId: 'i9', connectWithinMs: 1_000 })).toEqual({
        kind: 'refused',
        code: 'instance_mismatch',
      });
    });

    it('attaches the same id with the same digest to the live command, and refuses another digest', async () => {
      await bind();
      await admit('c1');
      const waiter = {
        rpcId: 'rpc-2',
        caller: CALLER,
        callerNodeId: 'n1',
        waitFor: 'completed',
        withinMs: null,
      } as const;
      expect(await admit('c1', { waiter })).toMatchObject({
        kind: 'attached',
        command: { commandId: 'c1', version: 1 },
        result: null,
      });
      expect(await admit('c1', { waiter, digest: 'd2' })).toEqual({ kind: 'refused', code: 'command_conflict' });
      expect((await bench().backend.waiters.ofCommands([keyFor('c1')]))[0]?.map(({ waiter }) => waiter.rpcId)).toEqual([
        'rpc-c1',
        'rpc-2',
      ]);
    });

    it('replays the recorded outcome for an hour after the end, and then forgets it', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      await bench().backend.commands.finish(keyFor('c1'), ending());
      await bench().advance(3_599_000);
      expect(await admit('c1')).toMatchObject({
        kind: 'attached',
        command: { outcome: 'completed' },
        result: toJson({ ok: true }),
      });
      await bench().advance(2_000);
      expect(await admit('c1')).toMatchObject({ kind: 'admitted' });
    });

    it('reports for how long an ended id is known, and has no mark for a command with a record or an unknown one', async () => {
      expect(bench().backend.commands.windowMs).toBe(3_600_000);
      await bind();
      await dispatched(bench(), 'c1');
      expect(await bench().backend.commands.mark(keyFor('c1'))).toBeNull();
      await bench().backend.commands.finish(keyFor('c1'), ending());
      expect(await bench().backend.commands.mark(keyFor('c1'))).toBeNull();
      expect(await bench().backend.commands.mark(keyFor('c2'))).toBeNull();
      expect(await read(bench(), 'c1')).toMatchObject({ resultExpired: false });
    });

    it('holds one reservation per live command of the scope and frees it with its end', async () => {
      await bind();
      const one = { scopeLimit: 1 };
      await dispatched(bench(), 'c1', one);
      expect(await admit('c2', one)).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
      await bench().backend.commands.finish(keyFor('c1'), ending());
      expect(await admit('c2', one)).toMatchObject({ kind: 'admitted' });
      expect(await admit('c3', { ...one, scopeId: 'team' })).toMatchObject({ kind: 'admitted' });
    });

    it('holds at most 1000 undispatched commands for one client', async () => {
      await bind();
      const answers = new Set<string>();
      await inWaves(1000, 250, async (i) => void answers.add((await admit(`c${i}`, { scopeLimit: 5000 })).kind));
      expect([...answers]).toEqual(['admitted']);
      expect(await admit('more', { scopeLimit: 5000 })).toEqual({ kind: 'refused', code: 'queue_full' });
      await bench().backend.commands.dispatch(keyFor('c0'), BOUND);
      expect(await admit('more', { scopeLimit: 5000 })).toMatchObject({ kind: 'admitted' });
    });

    it('registers at most eight waiters on one command', async () => {
      await bind();
      for (let i = 0; i < 8; i++)
        await admit('c1', {
          waiter: { rpcId: `r${i}`, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null },
        });
      expect(
        await admit('c1', {
          waiter: { rpcId: 'r8', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null },
        }),
      ).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
    });
  });
}

// Defines the contract tests of CommandStore about previews of an admission.

/** Defines the tests that a preview predicts the answer to the admission after it, and writes nothing. */
export function previews(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  const both = async (id: string, over: Partial<AdmitRequest> = {}) => {
    const { answer, ...state } = await bench().backend.commands.preview(admission(id, over));
    const admitted = await admit(id, over);
    expect(answer.kind).toBe(admitted.kind);
    if (answer.kind === 'refused') expect(answer).toEqual(admitted);
    if (answer.kind === 'attached' && admitted.kind === 'attached') expect(answer.command).toEqual(admitted.command);
    return { kind: answer.kind, code: answer.kind === 'refused' ? answer.code : null, ...state };
  };
  const empty = { known: false, boundInstanceId: null, reserved: 0, queued: 0 };

  describe('an admission that is repeated because its answer was lost', () => {
    const made = { chosenId: false, digest: '' };
    const again = { ...made, repeated: true };

    it('admits nothing twice, although the relay made the id', async () => {
      await bind();
      const node = await openNode(bench());
      expect(await admit('c1', made)).toMatchObject({ kind: 'admitted' });
      const before = await read(bench(), 'c1');
      expect(await admit('c1', again)).toMatchObject({ kind: 'attached', command: { version: before.version } });
      expect(await bench().backend.commands.loads([ALICE])).toEqual([{ inFlight: 0, queued: 1 }]);
      expect(await kinds(bench(), 'c1')).toEqual(['command']);
      expect(await countWaits(bench().backend.waiters, ANY_WAIT)).toMatchObject({ count: 1 });
      expect((await node.take()).filter(({ kind }) => kind === 'command')).toHaveLength(1);
    });

    it('admits the command if the first request never arrived', async () => {
      await bind();
      expect(await admit('c1', again)).toMatchObject({ kind: 'admitted', command: { version: 1 } });
    });

    it('gets the end that the command has had since', async () => {
      await bind();
      const node = await openNode(bench());
      await dispatched(bench(), 'c1', made);
      await bench().backend.commands.finish(keyFor('c1'), ending());
      expect(await admit('c1', again)).toMatchObject({
        kind: 'attached',
        command: { outcome: 'completed' },
        result: '{"ok":true}',
      });
      expect((await node.take()).filter(({ kind }) => kind === 'reply')).toHaveLength(1);
    });

    it('keeps its wait when the command has as many as it may have', async () => {
      await bind();
      await admit('c1', made);
      const waiter = (rpcId: string) =>
        ({ rpcId, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null }) as const;
      for (let i = 1; i < 8; i++) await bench().backend.waiters.attach(keyFor('c1'), waiter(`r${i}`));
      expect(await bench().backend.waiters.attach(keyFor('c1'), waiter('r8'))).toEqual({ kind: 'full' });
      expect(await admit('c1', again)).toMatchObject({ kind: 'attached' });
      expect(await countWaits(bench().backend.waiters, ANY_WAIT)).toMatchObject({ count: 8 });
    });
  });

  describe('a preview of an admission', () => {
    it('refuses as the admission does: an absent target, another instance, a full scope', async () => {
      expect(await both('c1')).toEqual({ kind: 'refused', code: 'not_connected', ...empty });
      await bind();
      const bound = { ...empty, boundInstanceId: 'i1' };
      expect(await both('c1', { namedInstanceId: 'i9' })).toMatchObject({ code: 'instance_mismatch', ...bound });
      expect(await both('c1', { scopeLimit: 1 })).toEqual({ kind: 'admitted', code: null, ...bound });
      const full = { code: 'capacity_exceeded', ...bound, reserved: 1, queued: 1 };
      expect(await both('c2', { scopeLimit: 1 })).toMatchObject(full);
    });

    it('attaches to a known id and replays an ended one, and refuses another digest and a ninth wait', async () => {
      await bind();
      for (let i = 0; i < 7; i++)
        await admit('c1', {
          waiter: { rpcId: `r${i}`, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null },
        });
      expect(await both('c1')).toMatchObject({ code: null, kind: 'attached', known: true });
      const ninth = { rpcId: 'r9', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
      expect(await both('c1', { waiter: ninth })).toMatchObject({ code: 'capacity_exceeded', known: true });
      expect(await both('c1', { digest: 'd2' })).toMatchObject({ code: 'command_conflict', known: true });
      await dispatched(bench(), 'c2');
      await bench().backend.commands.finish(keyFor('c2'), ending());
      expect(await both('c2')).toMatchObject({ kind: 'attached', known: true });
    });

    it('admits, registers, reserves and retains nothing', async () => {
      await bind();
      const { commands, waiters, inspector } = bench().backend;
      for (let i = 0; i < 3; i++) expect((await commands.preview(admission('c1'))).answer.kind).toBe('admitted');
      expect(await commands.get([keyFor('c1')])).toEqual([null]);
      expect(await kinds(bench(), 'c1')).toEqual([]);
      expect(await countWaits(waiters, ANY_WAIT)).toEqual({ count: 0, complete: true });
      expect((await inspector.scopes({ first: 10, after: null })).rows).toEqual([]);
      expect(await commands.live(ALICE)).toEqual([]);
      expect((await commands.dispatch(keyFor('c1'), BOUND)).kind).toBe('skip');
    });
  });
}

// Defines the contract tests of CommandStore about the dispatch of commands.

/** Defines the tests that a command is dispatched once, to the bound link. */
export function dispatch(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('dispatch', () => {
    it('marks the command once, binds the instance and returns the params', async () => {
      await bind();
      await admit('c1');
      expect(await bench().backend.commands.dispatch(keyFor('c1'), BOUND)).toMatchObject({
        kind: 'dispatch',
        params: toJson({ n: 1 }),
        remainingMs: 30_000,
        command: { stage: 'dispatched', attempts: 1, boundInstanceId: 'i1', execution: 'may_have_run' },
      });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), BOUND)).toEqual({ kind: 'skip' });
    });

    it('skips for a link that is no longer bound, for a due command and for an ended one', async () => {
      await bind();
      for (const id of ['c1', 'c2', 'c3']) await admit(id);
      expect(await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 7 })).toEqual({ kind: 'skip' });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'n9' })).toEqual({
        kind: 'skip',
      });
      await bench().backend.commands.settle(keyFor('c2'), { kind: 'cancel', reason: null, by: 'test' });
      expect(await bench().backend.commands.dispatch(keyFor('c2'), BOUND)).toEqual({ kind: 'skip' });
      await bench().advance(30_000);
      expect(await bench().backend.commands.dispatch(keyFor('c3'), BOUND)).toEqual({ kind: 'skip' });
      expect(await bench().backend.commands.dispatch(keyFor('none'), BOUND)).toEqual({ kind: 'skip' });
    });
  });
}

/** Defines the tests of the buckets from which admissions take tokens. */
export function rates(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  const slow = { rule: 'slow', caller: 'alice', burst: 2, perSecond: 0.5 };
  const limited = (retryAfterMs: number) => ({ kind: 'refused', code: 'rate_limited', retryAfterMs });

  describe('a rate rule', () => {
    it('admits a burst, says when the next call may succeed, and writes nothing for a refused one', async () => {
      await bind();
      for (const id of ['c1', 'c2']) expect(await admit(id, { rate: slow })).toMatchObject({ kind: 'admitted' });
      expect(await admit('c3', { rate: slow })).toEqual(limited(2_000));
      expect(await bench().backend.commands.get([keyFor('c3')])).toEqual([null]);
      expect(await kinds(bench(), 'c3')).toEqual([]);
      await bench().advance(1_500);
      expect(await admit('c3', { rate: slow })).toEqual(limited(500));
      await bench().advance(500);
      expect(await admit('c3', { rate: slow })).toMatchObject({ kind: 'admitted' });
      expect(await admit('c4', { rate: slow })).toEqual(limited(2_000));
    });

    it('is shown by the preview, which takes no token', async () => {
      await bind();
      const answer = async (id: string) =>
        (await bench().backend.commands.preview(admission(id, { rate: slow }))).answer;
      for (let i = 0; i < 3; i++) expect(await answer('c1')).toEqual({ kind: 'admitted' });
      for (const id of ['c1', 'c2']) await admit(id, { rate: slow });
      expect(await answer('c3')).toEqual(limited(2_000));
      await bench().advance(2_000);
      expect(await answer('c3')).toEqual({ kind: 'admitted' });
    });

    it('takes no token for a repeated call, nor for one that is refused for another reason', async () => {
      const one = { ...slow, burst: 1 };
      expect(await admit('c0', { rate: one })).toEqual({ kind: 'refused', code: 'not_connected' });
      await bind();
      expect(await admit('c0', { rate: one, scopeLimit: 0 })).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
      expect(await admit('c1', { rate: one })).toMatchObject({ kind: 'admitted' });
      expect(await admit('c1', { rate: one })).toMatchObject({ kind: 'attached' });
      expect(await admit('c2', { rate: one })).toEqual(limited(2_000));
      await bench().advance(2_000);
      expect(await admit('c1', { rate: one })).toMatchObject({ kind: 'attached' });
      expect(await admit('c2', { rate: one })).toMatchObject({ kind: 'admitted' });
    });

    it('has a bucket for each caller and rule', async () => {
      await bind();
      const one = { ...slow, burst: 1 };
      const buckets = [one, { ...one, caller: '/admin/ops' }, { ...one, rule: 'other' }];
      for (const [i, rate] of buckets.entries())
        expect(await admit(`c${i}`, { rate })).toMatchObject({ kind: 'admitted' });
      for (const rate of buckets) expect(await admit('c9', { rate })).toEqual(limited(2_000));
      expect(await admit('c9')).toMatchObject({ kind: 'admitted' });
    });

    it('admits no more than the burst of calls that arrive together', async () => {
      await bind();
      const ids = Array.from({ length: 20 }, (_, i) => `c${i}`);
      const answers = await Promise.all(ids.map((id) => admit(id, { rate: { ...slow, burst: 7 } })));
      expect(answers.map(({ kind }) => kind)).toEqual(ids.map((_, i) => (i < 7 ? 'admitted' : 'refused')));
      expect(answers.slice(7)).toEqual(ids.slice(7).map(() => limited(2_000)));
    });
  });
}
