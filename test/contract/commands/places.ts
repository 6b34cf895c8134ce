/** Defines the contract tests of CommandStore about calls that name a context of their client. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AdmitRequest, Binding } from '../../../src/core/commands/command-store.ts';
import type { ContextReport } from '../../../src/core/contexts/context.ts';
import { LEFT_CONTEXTS } from '../../../src/core/limits.ts';
import { ALICE, admission, ending, keyFor, openNode, read, type Bench } from '../kit/bench.ts';
import { hello } from '../kit/connections-model.ts';
import { context, delta, report, snapshot } from '../kit/contexts-model.ts';

type Tab = { readonly binding: Binding; readonly report: (given: ContextReport) => Promise<unknown> };

/** Connects alice's client, which knows places, and binds it. */
async function join({ backend }: Bench, over: Parameters<typeof hello>[2] = {}): Promise<Tab> {
  const { connection } = await backend.connections.connect(hello('alice', 'tab', { places: true, ...over }));
  const { nodeId, instanceId, epoch, places = false } = connection;
  const binding = { nodeId, instanceId, epoch, places };
  await backend.commands.rebind(ALICE, binding, 'up');
  return { binding, report: async (given) => backend.contexts.report(ALICE, epoch, given) };
}

const GONE = { kind: 'refused', code: 'context_gone' } as const;

/** Defines the tests of calls that name a context. */
export function places(bench: () => Bench): void {
  const named = async (id: string, contextId: string, over: Partial<AdmitRequest> = {}) => {
    const request = admission(id, { contextId, knowsPlaces: true, ...over });
    const { commands } = bench().backend;
    const { answer } = await commands.preview(request);
    const admitted = await commands.admit(request);
    expect(answer.kind).toBe(admitted.kind);
    if (answer.kind === 'refused') expect(answer).toEqual(admitted);
    return admitted;
  };

  describe('a call that names a context', () => {
    it('is admitted while the client reports the context; record and rows name it, and those of other calls do not', async () => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'), context('t2', { status: 'idle' }))));
      const label = { kind: 'mcp', name: 'host', version: '1' } as const;
      const caller = { kind: 'user', name: 'alice', label } as const;
      expect(await named('c1', 't1', { caller })).toMatchObject({ kind: 'admitted' });
      expect(await named('c2', 't2')).toMatchObject({ kind: 'admitted' });
      await bench().backend.commands.admit(admission('c3'));
      expect(await read(bench(), 'c1')).toMatchObject({ contextId: 't1', caller, expectedInstanceId: 'i1' });
      expect(await read(bench(), 'c2')).toMatchObject({ contextId: 't2' });
      expect(Object.keys(await read(bench(), 'c3'))).not.toContain('contextId');
      const { commands, history } = bench().backend;
      expect(await commands.dispatch(keyFor('c1'), tab.binding)).toMatchObject({ command: { contextId: 't1' } });
      await commands.finish(keyFor('c1'), ending());
      expect(await read(bench(), 'c1')).toMatchObject({ outcome: 'completed', contextId: 't1', caller });
      const page = { first: 10, after: null };
      const shown = async (id: string) =>
        (await history.ofCommand('alice', id, page)).rows.map(({ row }) => [row.kind, row.contextId, row.callerLabel]);
      expect(await shown('c1')).toEqual([
        ['command', 't1', label],
        ['result', 't1', undefined],
      ]);
      expect(await shown('c3')).toEqual([['command', undefined, undefined]]);
    });

    it('is refused where the client does not report the context, or reports it as closed', async () => {
      const tab = await join(bench());
      expect(await named('c1', 't1')).toEqual(GONE);
      await tab.report(report(snapshot(context('t1', { status: 'closed' }))));
      expect(await named('c1', 't1')).toEqual(GONE);
      expect(await named('c1', 't2')).toEqual(GONE);
      expect(await bench().backend.commands.get([keyFor('c1')])).toEqual([null]);
    });

    it.each([
      ['removed', (id: string) => report(delta([], id))],
      ['omitted from a snapshot', () => report(snapshot(context('other')))],
      ['closed', (id: string) => report(delta([context(id, { status: 'closed' })]))],
    ])('is refused where the context comes back after it was %s', async (_, leave) => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      await tab.report(leave('t1'));
      await tab.report(report(delta([context('t1')])));
      expect(await named('c1', 't1')).toEqual(GONE);
      await tab.report(report(snapshot(context('t1'))));
      expect(await named('c1', 't1')).toEqual(GONE);
    });

    it('is admitted after a new link of the same instance, and not for a new instance that never reported the context', async () => {
      const first = await join(bench());
      await first.report(report(snapshot(context('t1'))));
      const second = await join(bench());
      expect(await named('c1', 't1')).toMatchObject({ kind: 'admitted' });
      await second.report(report(snapshot(context('t1'))));
      expect(await named('c2', 't1')).toMatchObject({ kind: 'admitted' });
      await join(bench(), { instanceId: 'i2' });
      expect(await named('c3', 't1')).toEqual(GONE);
    });

    it('may wait for a client that is away, in the name of the instance that reports the context', async () => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      const { connections, commands } = bench().backend;
      await connections.disconnect(ALICE, tab.binding.epoch, 'lost');
      await commands.rebind(ALICE, tab.binding, 'down');
      expect(await named('c1', 't1')).toEqual({ kind: 'refused', code: 'not_connected' });
      expect(await named('c1', 't1', { connectWithinMs: 5_000 })).toMatchObject({ command: { stage: 'admitted' } });
      expect(await named('c2', 't2', { connectWithinMs: 5_000 })).toEqual(GONE);
      const again = await join(bench());
      expect(await commands.dispatch(keyFor('c1'), again.binding)).toMatchObject({ kind: 'dispatch' });
    });

    it.each([
      ['waits for its client', 'down'],
      ['is queued', 'up'],
    ])('ends unwritten if another instance connects while it %s', async (_, link) => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      if (link === 'down') {
        await bench().backend.connections.disconnect(ALICE, tab.binding.epoch, 'lost');
        await bench().backend.commands.rebind(ALICE, tab.binding, 'down');
      }
      expect(await named('c1', 't1', { connectWithinMs: 5_000 })).toMatchObject({ kind: 'admitted' });
      await join(bench(), { instanceId: 'i2' });
      const end = { outcome: 'expired', execution: 'not_written', error: { code: 'context_gone' } };
      expect(await read(bench(), 'c1')).toMatchObject(end);
    });

    it('is not dispatched once the context has left, even if it is reported again; refusing it ends it unwritten', async () => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      await named('c1', 't1');
      await tab.report(report(delta([], 't1')));
      const { commands } = bench().backend;
      const refused = { kind: 'refuse', code: 'context_gone' } as const;
      expect(await commands.dispatch(keyFor('c1'), tab.binding)).toEqual(refused);
      await tab.report(report(delta([context('t1')])));
      expect(await commands.dispatch(keyFor('c1'), tab.binding)).toEqual(refused);
      expect(await read(bench(), 'c1')).toMatchObject({ stage: 'queued' });
      const end = { outcome: 'expired', execution: 'not_written', error: { code: 'context_gone' } };
      expect(await commands.settle(keyFor('c1'), refused)).toMatchObject({ kind: 'settled', command: end });
      expect(await commands.dispatch(keyFor('c1'), tab.binding)).toEqual({ kind: 'skip' });
    });

    it('is not ended by a refusal that comes after its dispatch', async () => {
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      await named('c1', 't1');
      const { commands } = bench().backend;
      expect(await commands.dispatch(keyFor('c1'), tab.binding)).toMatchObject({ kind: 'dispatch' });
      expect(await commands.settle(keyFor('c1'), { kind: 'refuse', code: 'context_gone' })).toMatchObject({
        kind: 'unchanged',
      });
    });

    it('is never written to a client that knows no places', async () => {
      const tab = await join(bench(), { places: false });
      await tab.report(report(snapshot(context('t1'))));
      const unsupported = { code: 'context_unsupported' };
      expect(await named('c1', 't1', { knowsPlaces: false })).toEqual({ kind: 'refused', ...unsupported });
      // The caller has not seen the connection, and the link says it at the dispatch.
      const claim = { binding: tab.binding, attempt: '1' };
      const admitted = await named('c2', 't1', { knowsPlaces: null, claim });
      expect(admitted).toMatchObject({ kind: 'admitted' });
      expect(admitted).not.toHaveProperty('dispatch');
      expect(await bench().backend.commands.dispatch(keyFor('c2'), tab.binding)).toEqual({
        kind: 'refuse',
        ...unsupported,
      });
    });

    it('names the context of one client only', async () => {
      const other = await bench().backend.connections.connect(hello('alice', 'other', { places: true }));
      const of = { userId: 'alice', clientId: 'other' };
      await bench().backend.contexts.report(of, other.connection.epoch, report(snapshot(context('t1'))));
      await join(bench());
      expect(await named('c1', 't1')).toEqual(GONE);
    });

    it('is posted to the node of the link as any other, and again for a new link', async () => {
      const node = await openNode(bench());
      const tab = await join(bench());
      await tab.report(report(snapshot(context('t1'))));
      await named('c1', 't1');
      expect(await node.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
      const again = await join(bench());
      expect(await node.take()).toContainEqual({ kind: 'command', key: keyFor('c1') });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), again.binding)).toMatchObject({ kind: 'dispatch' });
    });

    it(`is refused for the latest ${LEFT_CONTEXTS} contexts that left, and for those that are reported again`, async () => {
      const tab = await join(bench());
      const ids = Array.from({ length: LEFT_CONTEXTS + 2 }, (_, i) => `t${i}`);
      await tab.report(report(snapshot(context('again'))));
      await tab.report(report(delta([], 'again')));
      await tab.report(report(delta([context('again')])));
      for (const id of ids) {
        await tab.report(report(delta([context(id)])));
        await bench().advance(1);
        await tab.report(report(delta([], id)));
      }
      await tab.report(report(delta(['t0', 't9', 'again'].map((id) => context(id)))));
      expect(await named('c1', 't0')).toMatchObject({ kind: 'admitted' });
      expect(await named('c2', 't9')).toEqual(GONE);
      expect(await named('c3', 'again')).toEqual(GONE);
    });

    it('is answered as by a plain list of first lives after any sequence of reports and links', async () => {
      const tab = await join(bench());
      const id = fc.constantFrom<string>('a', 'b', 'c');
      const act = fc.oneof(
        fc.record({
          set: fc.uniqueArray(id, { maxLength: 3 }),
          closed: fc.boolean(),
          snapshot: fc.boolean(),
          removed: fc.option(id, { nil: null }),
        }),
        fc.constant('link' as const),
      );
      let [lives, number, link] = [0, 0, tab];
      const property = fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
        const run = `r${lives++}`;
        link = await join(bench(), { instanceId: run });
        const [reported, left] = [new Set<string>(), new Set<string>()];
        for (const one of acts) {
          if (one === 'link') link = await join(bench(), { instanceId: run });
          else {
            const removed = one.snapshot || one.removed === null || one.set.includes(one.removed) ? [] : [one.removed];
            const rows = one.set.map((name) => context(name, one.closed ? { status: 'closed' } : {}));
            await link.report(report(one.snapshot ? snapshot(...rows) : delta(rows, ...removed)));
            const gone = one.snapshot ? [...reported].filter((name) => !one.set.includes(name)) : removed;
            for (const name of gone) if (reported.delete(name)) left.add(name);
            for (const name of one.set) reported.add(name);
            if (one.closed) for (const name of one.set) left.add(name);
          }
          for (const name of ['a', 'b', 'c']) {
            const isHere = reported.has(name) && !left.has(name);
            const { kind } = await named(`x${number++}`, name, { scopeLimit: 100_000 });
            expect([name, kind]).toEqual([name, isHere ? 'admitted' : 'refused']);
          }
        }
        for (const key of await bench().backend.commands.live(ALICE))
          await bench().backend.commands.settle(key, { kind: 'cancel', reason: null, by: 'test' });
      });
      await fc.assert(property, { numRuns: 15 });
    });
  });
}
