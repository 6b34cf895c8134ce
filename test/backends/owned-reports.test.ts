/** Tests that a new owner of a partition knows the contexts and windows that clients of other processes reported. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OwnedBackend } from '../../src/backends/owned/open.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { Reports } from '../../src/backends/owned/reports.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { ALICE, admission } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import {
  ANY_CONTEXT,
  ANY_WINDOW,
  browserWindow,
  context,
  delta,
  report,
  snapshot,
} from '../contract/kit/contexts-model.ts';
import { FakeClock } from '../kit/clock.ts';
import { ownedPlace } from '../kit/owned.ts';
import { eventually } from '../kit/patience.ts';

const PAGE = { first: 100, after: null };

describe('what clients reported, after another process has taken their partition over', () => {
  let owner: OwnedBackend;
  let next: OwnedBackend;
  beforeEach(async () => {
    const place = ownedPlace(new FakeClock(), 2);
    const scopeOf = (userId: string): string => userId;
    owner = await place.open({ nodeId: 'a', scopeOf });
    next = await place.open({ nodeId: 'b', scopeOf });
  });
  afterEach(() => next.backend.close());

  const rowsOf = async ({ backend }: OwnedBackend) => {
    const [contexts, windows] = [
      await backend.contexts.list(ANY_CONTEXT, PAGE),
      await backend.contexts.windows(ANY_WINDOW, PAGE),
    ];
    return [contexts.rows.map(({ row }) => row.contextId), windows.rows.map(({ row }) => row.window.windowId)];
  };

  it('is there again, with what left, and with what was under way meanwhile', async () => {
    const { connections, contexts, commands } = next.backend;
    const { connection } = await connections.connect(hello('alice', 'tab', { nodeId: 'b', places: true }));
    const { epoch, instanceId } = connection;
    await commands.rebind(ALICE, { nodeId: 'b', instanceId, epoch }, 'up');
    await contexts.report(ALICE, epoch, report(snapshot(context('c1'), context('c2')), snapshot(browserWindow('w1'))));
    await contexts.report(ALICE, epoch, report(delta([context('c3')], 'c2'), null));
    await contexts.report(ALICE, epoch, report(delta([context('c2')]), null));
    expect(await rowsOf(owner)).toEqual([['c1', 'c2', 'c3'], ['w1']]);

    const moving = owner.backend.close();
    const late = contexts.report(ALICE, epoch, report(delta([context('c4')], 'c1'), null));
    await moving;
    expect(await late).toBe('taken');
    await eventually(async () => expect(await rowsOf(next)).toEqual([['c2', 'c3', 'c4'], ['w1']]));
    const named = (commandId: string, contextId: string) =>
      commands.admit(admission(commandId, { contextId, clientType: null, connectWithinMs: 1_000 }));
    expect(await named('m1', 'c3')).toMatchObject({ kind: 'admitted' });
    expect(await named('m2', 'c1')).toMatchObject({ kind: 'refused', code: 'context_gone' });
    // The id was reported again, after its context had left.
    expect(await named('m3', 'c2')).toMatchObject({ kind: 'refused', code: 'context_gone' });
  });

  it('is not there again if the link is gone, or if a new instance reported nothing', async () => {
    const { connections, contexts } = next.backend;
    const one = await connections.connect(hello('alice', 'tab', { nodeId: 'b' }));
    await contexts.report(ALICE, one.connection.epoch, report(snapshot(context('c1')), null));
    await connections.connect(hello('alice', 'tab', { nodeId: 'b', instanceId: 'i2' }));
    const bob = { userId: 'bob', clientId: 'tab' };
    const other = await connections.connect(hello('bob', 'tab', { nodeId: 'b' }));
    await contexts.report(bob, other.connection.epoch, report(snapshot(context('c9')), null));
    await connections.disconnect(bob, other.connection.epoch, 'lost');
    await owner.backend.close();
    await eventually(() => expect(next.owners.orphans).toBe(0));
    expect(await rowsOf(next)).toEqual([[], []]);
  });
});

it('reports twice to a new owner without making anything leave in between', async () => {
  const clock = new FakeClock();
  const { sha256 } = createCrypto('test');
  const make = () => createMemoryBackend({ markSecret: 'x', clock, sha256, log: silentLog });
  let owner = make();
  const reports = new Reports(
    {
      connections: { ...owner.connections, connect: (request) => owner.connections.connect(request) },
      contexts: { ...owner.contexts, report: (...args) => owner.contexts.report(...args) },
    },
    { clock, log: silentLog },
  );
  const { connections, contexts } = reports.stores;
  const tab = hello('alice', 'tab', { places: true });
  const { connection } = await connections.connect(tab);
  await contexts.report(ALICE, connection.epoch, report(snapshot(context('c1'), context('c2'))));
  await contexts.report(ALICE, connection.epoch, report(delta([], 'c1')));
  await contexts.report(ALICE, connection.epoch, report(delta([context('c1')])));
  owner = make();
  await owner.connections.connect(tab);
  for (let time = 0; time < 2; time++) reports.again(() => true);
  const { rows } = await owner.contexts.list(ANY_CONTEXT, PAGE);
  expect(rows.map(({ row }) => row.contextId)).toEqual(['c1', 'c2']);
  const named = (contextId: string) =>
    owner.commands.admit(admission(`m-${contextId}`, { contextId, connectWithinMs: 1_000 }));
  expect(await named('c2')).toMatchObject({ kind: 'admitted' });
  expect(await named('c1')).toMatchObject({ kind: 'refused', code: 'context_gone' });
});

it('makes nothing leave that the owner has taken while its answer was under way', async () => {
  const clock = new FakeClock();
  const { sha256 } = createCrypto('test');
  const owner = createMemoryBackend({ markSecret: 'x', clock, sha256, log: silentLog });
  let answered = Promise.resolve();
  const reports = new Reports(
    {
      connections: owner.connections,
      contexts: {
        ...owner.contexts,
        async report(...args) {
          const outcome = owner.contexts.report(...args);
          await answered;
          return outcome;
        },
      },
    },
    { clock, log: silentLog },
  );
  const { connections, contexts } = reports.stores;
  const { connection } = await connections.connect(hello('alice', 'tab', { places: true }));
  const told = (...args: Parameters<typeof report>) => contexts.report(ALICE, connection.epoch, report(...args));
  await told(snapshot(context('c1'), context('c2')));
  const held = Promise.withResolvers<void>();
  answered = held.promise;
  const second = told(delta([context('c3')], 'c1'));
  reports.again(() => true);
  held.resolve();
  await second;
  const { rows } = await owner.contexts.list(ANY_CONTEXT, PAGE);
  expect(rows.map(({ row }) => row.contextId)).toEqual(['c2', 'c3']);
  const named = (contextId: string) =>
    owner.commands.admit(admission(`m-${contextId}`, { contextId, connectWithinMs: 1_000 }));
  expect(await named('c3')).toMatchObject({ kind: 'admitted' });
  expect(await named('c1')).toMatchObject({ kind: 'refused', code: 'context_gone' });
});
