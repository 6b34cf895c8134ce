/** Defines the contract tests of the port PauseStore, and of what a pause does to admissions and dispatches. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdmitRequest, Binding } from '../../src/core/commands/command-store.ts';
import type { MailboxRow } from '../../src/core/commands/node-store.ts';
import { PAUSES, PAUSES_OF_ADMINS, PAUSES_OF_PERSONS, PAUSES_PER_USER } from '../../src/core/limits.ts';
import type { Pause, PauseCover } from '../../src/core/pauses/pause.ts';
import { eventually } from '../kit/patience.ts';
import {
  ALICE,
  BOUND,
  admission,
  ending,
  keyFor,
  kinds,
  openNode,
  read,
  type Bench,
  type MakeBench,
} from './kit/bench.ts';

const NOTHING: PauseCover = {
  ...{ userId: null, clientId: null, callerKind: null, caller: null, action: null, label: null },
};

function pauseOf(pauseId: string, over: Partial<Pause> = {}): Pause {
  const by = { kind: 'admin', name: 'ada' } as const;
  const rest = { reason: 'stop', by, since: 0, until: null, queued: 'keep', running: 'leave' } as const;
  return { ...NOTHING, pauseId, ...rest, ...over };
}

const PAUSED = { kind: 'refused', code: 'paused' } as const;
const LONG = { connectWithinMs: 60_000, respondWithinMs: 600_000 } as const;

/**
 * Defines the tests that every PauseStore must pass. `decidesAll`: the process of the bench decides everything.
 * `hasMail`: the nodes of the bench have mailboxes.
 */
export function pauseContract(name: string, make: MakeBench, { decidesAll = true, hasMail = true } = {}): void {
  describe(`pauses on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => void (bench = await make()));
    afterEach(() => bench.close());

    const keep = async (pause: Pause): Promise<readonly string[]> => {
      const { pauses } = bench.backend;
      return Promise.all(pauses.parts(pause.userId).map((part) => pauses.keep(part, pause)));
    };
    const lift = async ({ userId, pauseId }: Pause): Promise<readonly (Pause | null)[]> => {
      const { pauses } = bench.backend;
      return Promise.all(pauses.parts(userId).map((part) => pauses.lift(part, pauseId)));
    };
    const admit = (id: string, over: Partial<AdmitRequest> = {}) =>
      bench.backend.commands.admit(admission(id, { ...LONG, ...over }));
    /** Takes this many rows of a mailbox, which other processes may fill later. */
    const taken = async (node: Awaited<ReturnType<typeof openNode>>, count: number): Promise<readonly MailboxRow[]> => {
      const rows: MailboxRow[] = [];
      await eventually(async () => {
        rows.push(...(await node.take()));
        expect(rows.length).toBeGreaterThanOrEqual(count);
      });
      return rows;
    };
    const up = (binding: Binding = BOUND) => bench.backend.commands.rebind(ALICE, binding, 'up');

    it('refuses a covered call with the pause, admits others, and admits all once it is lifted', async () => {
      const pause = pauseOf('p1', { userId: 'alice', reason: 'lunch', until: null });
      expect(await keep(pause)).toEqual(['kept']);
      expect(await admit('c1')).toEqual({ ...PAUSED, pause });
      expect((await bench.backend.commands.preview(admission('c1', LONG))).answer).toEqual({ ...PAUSED, pause });
      expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
      expect(await admit('b1', { userId: 'bob', scopeId: 'bob' })).toMatchObject({ kind: 'admitted' });
      expect(await lift(pause)).toEqual([pause]);
      expect(await admit('c1')).toMatchObject({ kind: 'admitted' });
      expect(await lift(pause)).toEqual([null]);
    });

    it('covers exactly the calls that match each of its members', async () => {
      const agent = { kind: 'user', name: 'alice', label: { kind: 'mcp', name: 'Claude Code', version: '1' } } as const;
      const calls: Readonly<Record<string, Partial<AdmitRequest>>> = {
        user: { action: 'notes.add' },
        admin: { action: 'open', caller: { kind: 'admin', name: 'ada' } },
        agent: { action: 'notes.read', caller: agent },
        other: { action: 'notes.add', clientId: 'phone' },
        bob: { action: 'open', userId: 'bob', scopeId: 'bob', caller: { kind: 'user', name: 'bob' } },
      };
      let made = 0;
      const covered = async (cover: Partial<PauseCover>): Promise<readonly string[]> => {
        const pause = pauseOf(`p${++made}`, cover);
        await keep(pause);
        const found: string[] = [];
        for (const [call, over] of Object.entries(calls)) {
          const { answer } = await bench.backend.commands.preview(admission(`of-${call}`, { ...LONG, ...over }));
          if (answer.kind === 'refused' && answer.code === 'paused') found.push(call);
        }
        await lift(pause);
        return found;
      };
      expect(await covered({})).toEqual(['user', 'admin', 'agent', 'other', 'bob']);
      expect(await covered({ userId: 'alice' })).toEqual(['user', 'admin', 'agent', 'other']);
      expect(await covered({ userId: 'alice', clientId: 'tab' })).toEqual(['user', 'admin', 'agent']);
      expect(await covered({ callerKind: 'mcp' })).toEqual(['agent']);
      expect(await covered({ callerKind: 'user' })).toEqual(['user', 'agent', 'other', 'bob']);
      expect(await covered({ callerKind: 'grant' })).toEqual([]);
      expect(await covered({ caller: 'a*' })).toEqual(['user', 'admin', 'agent', 'other']);
      expect(await covered({ action: 'notes.*' })).toEqual(['user', 'agent', 'other']);
      expect(await covered({ action: 'notes' })).toEqual([]);
      expect(await covered({ label: 'Claude*' })).toEqual(['agent']);
      expect(await covered({ action: 'notes.*', callerKind: 'mcp', userId: 'bob' })).toEqual([]);
    });

    it.runIf(hasMail)('leaves what is queued, dispatches none of it, and offers it in order when it ends', async () => {
      const node = await openNode(bench);
      await up();
      await admit('c1');
      await admit('c2', { action: 'other' });
      await admit('c3');
      await taken(node, 3);
      const pause = pauseOf('p1', { action: 'open' });
      await keep(pause);
      const { commands } = bench.backend;
      expect(await commands.dispatch(keyFor('c1'), BOUND, '1')).toEqual({ kind: 'skip' });
      expect(await commands.dispatch(keyFor('c2'), BOUND, '2')).toMatchObject({ kind: 'dispatch' });
      expect(await read(bench, 'c1')).toMatchObject({ stage: 'queued', attempts: 0, dispatchedAt: null });
      expect(await node.take()).toEqual([]);
      await lift(pause);
      expect(await taken(node, 2)).toEqual([
        { kind: 'command', key: keyFor('c1') },
        { kind: 'command', key: keyFor('c3') },
      ]);
      expect(await commands.dispatch(keyFor('c1'), BOUND, '3')).toMatchObject({ kind: 'dispatch' });
      node.detach();
    });

    it.runIf(hasMail)('offers nothing that another pause covers still', async () => {
      const node = await openNode(bench);
      await up();
      await admit('c1');
      await taken(node, 1);
      const [one, two] = [pauseOf('p1', { userId: 'alice' }), pauseOf('p2')];
      await keep(one);
      await keep(two);
      await lift(two);
      expect(await node.take()).toEqual([]);
      expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND, '1')).toEqual({ kind: 'skip' });
      await lift(one);
      expect(await taken(node, 1)).toEqual([{ kind: 'command', key: keyFor('c1') }]);
      node.detach();
    });

    it('holds for a link that comes up meanwhile', async () => {
      await admit('c1');
      await keep(pauseOf('p1'));
      await up();
      expect(await read(bench, 'c1')).toMatchObject({ stage: 'queued' });
      expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND, '1')).toEqual({ kind: 'skip' });
    });

    it('lets what runs report and end', async () => {
      await up();
      await admit('c1');
      const { commands } = bench.backend;
      await commands.dispatch(keyFor('c1'), BOUND, '1');
      await keep(pauseOf('p1'));
      expect(await commands.finish(keyFor('c1'), ending())).toMatchObject({ kind: 'finished' });
      expect(await admit('c1')).toMatchObject({ kind: 'attached', command: { outcome: 'completed' } });
    });

    it('writes nothing again that had never arrived: that has failed, and nothing ran', async () => {
      const told = { ...BOUND, tellsReceived: true };
      const { commands } = bench.backend;
      await up(told);
      await admit('c1');
      await commands.dispatch(keyFor('c1'), told, '1');
      await keep(pauseOf('p1'));
      const moved = await commands.rebind(ALICE, { ...told, epoch: 2 }, 'up', new Set());
      expect(moved.unreceived?.again).toEqual([]);
      expect(await read(bench, 'c1')).toMatchObject({ outcome: 'failed', error: { code: 'not_received' } });
    });

    it('ends by the clock', async () => {
      const pause = pauseOf('p1', { userId: 'alice', until: bench.now() + 10_000 });
      await keep(pause);
      await bench.advance(9_999);
      expect(await admit('c2')).toMatchObject(PAUSED);
      await bench.advance(1);
      expect(await admit('c2')).toMatchObject({ kind: 'admitted' });
      expect((await bench.backend.pauses.list(null)).rows).toEqual([]);
    });

    // Each process looks in the partitions in which it decides.
    it.runIf(decidesAll)('is over at the next look after its end, which offers what waited', async () => {
      const node = await openNode(bench);
      await up();
      await admit('c1');
      await node.take();
      const pause = pauseOf('p1', { userId: 'alice', until: bench.now() + 10_000 });
      await keep(pause);
      await bench.advance(9_999);
      expect(await bench.backend.pauses.lapse()).toEqual([]);
      await bench.advance(1);
      expect(await bench.backend.pauses.lapse()).toEqual([pause]);
      expect(await node.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
      expect(await bench.backend.pauses.lapse()).toEqual([]);
      node.detach();
    });

    it('keeps no pause that was lifted before, although another relay still tries to', async () => {
      const pause = pauseOf('p1', { userId: 'alice' });
      expect(await lift(pause)).toEqual([null]);
      expect(await keep(pause)).toEqual(['over']);
      expect((await bench.backend.pauses.list(null)).rows).toEqual([]);
      expect(await admit('c1')).toMatchObject({ kind: 'admitted' });
      const other = pauseOf('p2', { userId: 'alice' });
      await keep(other);
      await lift(other);
      expect(await keep(other)).toEqual(['over']);
    });

    it('keeps a pause once, and shows it once, to all and to its user', async () => {
      const mine = pauseOf('p1', { userId: 'alice' });
      const wide = pauseOf('p2');
      for (const pause of [mine, wide, mine, { ...wide, reason: 'changed' }]) await keep(pause);
      const ids = async (userId: string | null): Promise<readonly string[]> => {
        const { rows } = await bench.backend.pauses.list(userId);
        return rows.map(({ pauseId, reason }) => `${pauseId} ${reason}`).toSorted();
      };
      expect(await ids(null)).toEqual(['p1 stop', 'p2 changed']);
      expect(await ids('alice')).toEqual(['p1 stop']);
      expect(await ids('bob')).toEqual([]);
    });

    it('has a bound for each user, which leaves room to others and to administrators', async () => {
      const by = { kind: 'user', name: 'alice' } as const;
      for (let i = 0; i < PAUSES_PER_USER; i++)
        expect(await keep(pauseOf(`p${i}`, { userId: 'alice', by }))).toEqual(['kept']);
      expect(await keep(pauseOf('more', { userId: 'alice', by }))).toEqual(['full']);
      expect(await keep(pauseOf('client', { userId: 'alice', by: { kind: 'client', name: 'tab' } }))).toEqual(['full']);
      expect(await keep(pauseOf('p1', { userId: 'alice', by, reason: 'again' }))).toEqual(['kept']);
      expect(await keep(pauseOf('admin', { userId: 'alice' }))).toEqual(['kept']);
    });

    it('leaves room to the person whose clients have all paused themselves', async () => {
      const ofClients = PAUSES_PER_USER - PAUSES_OF_PERSONS;
      const byClient = (i: number) => ({
        userId: 'alice',
        clientId: `c${i}`,
        by: { kind: 'client', name: `c${i}` } as const,
      });
      for (let i = 0; i < ofClients; i++) expect(await keep(pauseOf(`p${i}`, byClient(i)))).toEqual(['kept']);
      expect(await keep(pauseOf('one more', byClient(ofClients)))).toEqual(['full']);
      const by = { kind: 'user', name: 'alice' } as const;
      for (let i = 0; i < PAUSES_OF_PERSONS; i++)
        expect(await keep(pauseOf(`own ${i}`, { userId: 'alice', by }))).toEqual(['kept']);
      expect(await keep(pauseOf('too many', { userId: 'alice', by }))).toEqual(['full']);
    });

    it('counts and finds what a cover has', async () => {
      await up();
      await admit('run');
      await bench.backend.commands.dispatch(keyFor('run'), BOUND, '1');
      await admit('wait');
      await admit('other', { action: 'other' });
      await admit('away', { clientId: 'phone' });
      const { pauses } = bench.backend;
      const [part = 0] = pauses.parts('alice');
      const open = { ...NOTHING, userId: 'alice', action: 'open' };
      expect(await pauses.reach(part, open)).toEqual({ clients: 1, queued: 2, running: 1 });
      expect(await pauses.reach(part, { ...open, clientId: 'phone' })).toEqual({ clients: 0, queued: 1, running: 0 });
      const ids = async (which: 'queued' | 'running', most = 10): Promise<readonly string[]> =>
        (await pauses.covered(part, open, which, most)).map(({ commandId }) => commandId).toSorted();
      expect(await ids('queued')).toEqual(['away', 'wait']);
      expect(await ids('queued', 1)).toHaveLength(1);
      expect(await ids('running')).toEqual(['run']);
      await bench.backend.commands.settle(keyFor('run'), { kind: 'cancel', reason: 'stop', by: 'ada' });
      expect(await ids('running')).toEqual([]);
    });

    it('lets what waits expire, with nothing run', async () => {
      await up();
      await admit('c1', { connectWithinMs: 0, respondWithinMs: 1_000 });
      await keep(pauseOf('p1'));
      await bench.advance(1_000);
      await bench.backend.commands.settle(keyFor('c1'), { kind: 'expire' });
      expect(await read(bench, 'c1')).toMatchObject({ outcome: 'expired', execution: 'not_written' });
      expect(await kinds(bench, 'c1')).toEqual(['command', 'error']);
    });
  });
}

/** Defines the tests of a store that decides for other processes, whose answers may be lost on their way. */
export function awayPauseContract(name: string, make: MakeBench): void {
  describe(`pauses between processes on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => void (bench = await make()));
    afterEach(() => bench.close());

    const settle = (commandId: string, { nodeId, epoch }: Binding, attempt: string) =>
      bench.backend.commands.settle(keyFor(commandId), { kind: 'unwritten', nodeId, epoch, attempt });
    const pauseAll = async (): Promise<void> => {
      const { pauses } = bench.backend;
      for (const part of pauses.parts('alice')) await pauses.keep(part, pauseOf('p1', { userId: 'alice' }));
    };

    it('answers an attempt that has dispatched a command, and ends that once its node says it is not written', async () => {
      const { commands } = bench.backend;
      await commands.rebind(ALICE, BOUND, 'up');
      await commands.admit(admission('c1', LONG));
      expect(await commands.dispatch(keyFor('c1'), BOUND, '1')).toMatchObject({ kind: 'dispatch' });
      await pauseAll();
      expect(await commands.dispatch(keyFor('c1'), BOUND, '2')).toEqual({ kind: 'skip' });
      // The answer before may have arrived: then it is written, and only its node knows.
      for (let i = 0; i < 2; i++) expect(await commands.dispatch(keyFor('c1'), BOUND, '1')).toEqual({ kind: 'paused' });
      expect(await read(bench, 'c1')).toMatchObject({ stage: 'dispatched', version: 2 });
      for (const made of [
        { binding: BOUND, attempt: '2' },
        { binding: { ...BOUND, epoch: BOUND.epoch + 1 }, attempt: '1' },
      ])
        expect(await settle('c1', made.binding, made.attempt)).toMatchObject({ kind: 'unchanged' });
      const command = { outcome: 'expired', execution: 'not_written', error: { code: 'paused' } };
      expect(await settle('c1', BOUND, '1')).toMatchObject({ kind: 'settled', command });
      expect(await settle('c1', BOUND, '1')).toMatchObject({ kind: 'unchanged', command });
      expect(await commands.dispatch(keyFor('c1'), BOUND, '1')).toEqual({ kind: 'skip' });
    });

    it('answers so too if the admission has dispatched it, and ends nothing on which its client has reported', async () => {
      const { commands } = bench.backend;
      await commands.rebind(ALICE, BOUND, 'up');
      const made = { ...LONG, chosenId: false, claim: { binding: BOUND, attempt: '1' } };
      const { kind } = await commands.admit(admission('c1', made));
      expect(kind).toBe('admitted');
      await pauseAll();
      const again = await commands.admit(admission('c1', { ...made, repeated: true }));
      expect(again).toMatchObject({ kind: 'admitted', dispatch: { kind: 'paused' } });
      await commands.report(keyFor('c1'), { instanceId: BOUND.instanceId, kind: 'ack', payload: null, kept: null });
      expect(await settle('c1', BOUND, '1')).toMatchObject({ kind: 'unchanged', command: { stage: 'acknowledged' } });
    });
  });
}

/** Defines the test of the bound of all pauses of one state. */
export function pauseBoundContract(name: string, make: MakeBench): void {
  it(`has a bound of pauses on ${name}, and room for administrators within it`, async () => {
    const bench = await make();
    const { pauses } = bench.backend;
    const by = { kind: 'user', name: 'x' } as const;
    const most = PAUSES - PAUSES_OF_ADMINS;
    for (let i = 0; i < most; i++) await pauses.keep(0, pauseOf(`p${i}`, { userId: `u${i}`, by }));
    expect(await pauses.keep(0, pauseOf('one', { userId: 'one', by }))).toBe('full');
    for (let i = 0; i < PAUSES_OF_ADMINS; i++) expect(await pauses.keep(0, pauseOf(`a${i}`))).toBe('kept');
    expect(await pauses.keep(0, pauseOf('last'))).toBe('full');
    await bench.close();
  });
}
