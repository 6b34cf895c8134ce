/** Tests how a runtime registers its sites, and keeps them registered. */
import { describe, expect, test } from 'vitest';
import type { FakeLink } from '../kit/fake-relay.ts';
import { json, startRuntimeBench } from './kit/runtime-bench.ts';

const board = {
  siteId: 'board',
  title: 'The board',
  eventNames: ['site_changed'],
  actions: ['note.add'],
  capabilityProfile: { actionInvocation: true },
};
const frame = {
  title: 'The board',
  event_names: ['site_changed'],
  actions: ['note.add'],
  capability_profile: { action_invocation: true, sharing: false },
};

async function acknowledge(link: FakeLink): Promise<unknown> {
  const { ref, op, site_id, payload } = await link.next('site');
  link.send({ type: 'site_ack', ref });
  return [op, site_id, json(payload)];
}

async function refuse(link: FakeLink, code: string): Promise<void> {
  const { ref } = await link.next('site');
  link.send({ type: 'refused', frame: 'site', ref, code, message: 'In words.' });
}

describe('a runtime that hosts sites', () => {
  test('registers a site that was defined before it connected, and resolves when the relay accepted it', async () => {
    await using bench = await startRuntimeBench();
    const { registered } = bench.runtime.site(board);
    const link = await bench.up();
    expect(await acknowledge(link)).toEqual(['register', 'board', frame]);
    await registered;
    expect(bench.relay.faults).toEqual([]);
  });

  test('registers its sites again after each welcome, with their last definitions, and no removed one', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    bench.runtime.site(board);
    await acknowledge(link);
    const { registered } = bench.runtime.site({ siteId: 'board', title: 'Renamed' });
    await acknowledge(link);
    await registered;
    const other = bench.runtime.site({ siteId: 'other' });
    await acknowledge(link);
    await other.registered;
    const removed = other.remove();
    expect(await acknowledge(link)).toEqual(['remove', 'other', null]);
    await removed;
    const next = await bench.again(link);
    expect(await acknowledge(next)).toMatchObject(['register', 'board', { title: 'Renamed', actions: [] }]);
    expect(await next.untaken('site')).toBe(0);
  });

  test('keeps requests made without a link, and repeats those that were not answered', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const { registered } = bench.runtime.site(board);
    await link.next('site');
    const away = bench.until('disconnected');
    link.drop();
    const { retryInMs } = await away;
    const removed = bench.runtime.removeSite('old');
    await bench.clock.advance(retryInMs ?? 0);
    const next = await bench.up();
    expect([await acknowledge(next), await acknowledge(next)]).toMatchObject([
      ['register', 'board', frame],
      ['remove', 'old', null],
    ]);
    await Promise.all([registered, removed]);
  });

  test('returns to the definition that the relay accepted when it refuses a new one', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    bench.runtime.site(board);
    await acknowledge(link);
    const { registered } = bench.runtime.site({ ...board, actions: ['a'.repeat(9)] });
    await refuse(link, 'invalid_argument');
    await expect(registered).rejects.toMatchObject({ name: 'SiteRefusedError', code: 'invalid_argument' });
    const next = await bench.again(link);
    expect(await acknowledge(next)).toEqual(['register', 'board', frame]);
  });

  test('forgets a site that was refused from the start, and one that is already gone', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const { registered } = bench.runtime.site(board);
    await refuse(link, 'forbidden');
    await expect(registered).rejects.toMatchObject({ code: 'forbidden', message: 'In words.' });
    const removed = bench.runtime.removeSite('board');
    await refuse(link, 'not_found');
    await expect(removed).rejects.toMatchObject({ code: 'not_found' });
    const next = await bench.again(link);
    expect(await next.untaken('site')).toBe(0);
  });

  test('asks again later after a temporary refusal', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const { registered } = bench.runtime.site(board);
    await refuse(link, 'store_unavailable');
    expect(await link.untaken('site')).toBe(0);
    await bench.clock.advance(1_000);
    await acknowledge(link);
    await registered;
  });

  test('sends only the last of several requests for one site', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const first = bench.runtime.site(board);
    const second = bench.runtime.site({ siteId: 'board' });
    const { ref } = await link.next('site');
    const last = await link.next('site');
    link.send({ type: 'site_ack', ref: last.ref });
    await Promise.all([first.registered, second.registered]);
    link.send({ type: 'refused', frame: 'site', ref, code: 'forbidden', message: 'Too late.' });
    const next = await bench.again(link);
    expect(await acknowledge(next)).toMatchObject(['register', 'board', { actions: [] }]);
  });

  test('hosts at most 100 sites, and refuses invalid ids', async () => {
    await using bench = await startRuntimeBench();
    const all = Array.from({ length: 101 }, (_, at) => bench.runtime.site({ siteId: `s${at}` }));
    await expect(all[100]?.registered).rejects.toMatchObject({ code: 'capacity_exceeded' });
    expect(() => bench.runtime.site({ siteId: 'a/b' })).toThrow(TypeError);
  });

  test('ends every wait when it closes permanently', async () => {
    await using bench = await startRuntimeBench();
    await bench.up();
    const { registered } = bench.runtime.site(board);
    await bench.runtime.close({ withinMs: 0 });
    await expect(registered).rejects.toMatchObject({ name: 'LinkClosedError', reason: 'client_closed' });
    await expect(bench.runtime.removeSite('board')).rejects.toMatchObject({ name: 'LinkClosedError' });
  });
});
