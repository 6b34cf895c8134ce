/** Tests the subscription `commandUpdates`. */
import { describe, expect, it } from 'vitest';
import { RawJson, trustJson } from '../../src/core/json.ts';
import { SUBSCRIPTION_QUEUE } from '../../src/core/limits.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, pendingRpc, T0 } from './kit/rows.ts';
import { admin, listen } from './kit/run.ts';

const UPDATES = (id: string): string => `subscription {
  commandUpdates(userId: "ann", clientId: "c1", commandId: "${id}") {
    stage outcome at missed command { commandId waiters { rpcId } }
  }
}`;

const update = (more: Parameters<typeof command>[0], progress: string | null = null) => ({
  command: command(more),
  progress: progress === null ? null : trustJson(progress),
  number: null,
  at: T0,
});

describe('commandUpdates', () => {
  it('reports each change, counts what a slow reader missed, and frees its source when left', async () => {
    const { core, updates, calls } = fakeCore({ commands: [command()] });
    const events = await listen(UPDATES('k1'), { core });
    updates.push(update({ stage: 'queued' }));
    for (let i = 0; i < SUBSCRIPTION_QUEUE; i++) updates.push(update({ stage: 'dispatched' }));
    const first = await events.next();
    expect(first.value).toMatchObject({
      data: { commandUpdates: { stage: 'DISPATCHED', outcome: null, missed: 1, at: '2026-01-01T00:00:00.000Z' } },
    });
    expect((await events.next()).value).toMatchObject({ data: { commandUpdates: { missed: 0 } } });
    await events.return?.();
    expect(calls).toContain('updates.end');
  });

  it('ends after the terminal update', async () => {
    const { core, updates } = fakeCore({ commands: [command()] });
    const events = await listen(UPDATES('k1'), { core });
    updates.push(update({ stage: 'terminal', outcome: 'expired', execution: 'not_written' }));
    updates.end();
    expect((await events.next()).value).toMatchObject({ data: { commandUpdates: { outcome: 'EXPIRED' } } });
    expect((await events.next()).done).toBe(true);
  });

  it('reads nested fields again for each event', async () => {
    const { core, updates, calls } = fakeCore({ commands: [command()], waits: [pendingRpc()] });
    const events = await listen(UPDATES('k1'), { core });
    for (const stage of ['queued', 'dispatched'] as const) {
      updates.push(update({ stage }));
      expect((await events.next()).value).toMatchObject({
        data: { commandUpdates: { command: { waiters: [{ rpcId: 'k1-r1' }] } } },
      });
    }
    expect(calls.filter((call) => call === 'rpc.ofCommands')).toHaveLength(2);
  });

  it("shows progress, and an administrator's read is audited", async () => {
    const { core, updates } = fakeCore({ commands: [command()] });
    const audit: Record<string, unknown>[] = [];
    const document = 'subscription { commandUpdates(userId: "ann", clientId: "c1", commandId: "k1") { progress } }';
    const events = await listen(document, { core, requester: admin, audit });
    updates.push(update({}));
    expect((await events.next()).value).toEqual({ data: { commandUpdates: { progress: null } } });
    expect(audit).toEqual([]);
    updates.push(update({}, '{"percent":40}'));
    expect((await events.next()).value).toEqual({
      data: { commandUpdates: { progress: new RawJson(trustJson('{"percent":40}')) } },
    });
    expect(audit).toEqual([expect.objectContaining({ audit: 'payload', commandId: 'k1' })]);
  });

  it('writes one audit row for a subscription, however many reports it shows', async () => {
    const { core, updates } = fakeCore({ commands: [command()] });
    const audit: Record<string, unknown>[] = [];
    const document =
      'subscription { commandUpdates(userId: "ann", clientId: "c1", commandId: "k1") { isProgress progress } }';
    const events = await listen(document, { core, requester: admin, audit });
    for (const percent of [40, 60, 80]) {
      updates.push(update({}, `{"percent":${percent}}`));
      expect((await events.next()).value).toMatchObject({ data: { commandUpdates: { isProgress: true } } });
    }
    expect(audit).toHaveLength(1);
  });

  it('counts reports of progress without a row, if their payloads are not read', async () => {
    const { core, updates } = fakeCore({ commands: [command()] });
    const audit: Record<string, unknown>[] = [];
    const document = 'subscription { commandUpdates(userId: "ann", clientId: "c1", commandId: "k1") { isProgress } }';
    const events = await listen(document, { core, requester: admin, audit });
    updates.push(update({}, '{"percent":40}'));
    expect((await events.next()).value).toEqual({ data: { commandUpdates: { isProgress: true } } });
    expect(audit).toEqual([]);
  });

  it('of an absent command is not_found before any event', async () => {
    const { core } = fakeCore({});
    await expect(listen(UPDATES('none'), { core })).rejects.toMatchObject({ originalError: { code: 'not_found' } });
  });
});
