/** Tests what a relay retains of repeated results, ingested messages and payload reads. */
import { mkdtemp, readdir, rm, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { SpillStore } from '../../src/core/history/message.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const INVOKE = '/connections/alice/tab/actions/open';
const LARGE = { text: 'x'.repeat(20_000) };
const event = { kind: 'event', stream_suffix: 'notes', client_id: 'tab', instance_id: 'i1', message_id: 'm1' };

describe('a result that a link sends again', () => {
  it('is counted by the deduplicator and as a sighting of the case file, and changes nothing else', async () => {
    await using relay = await startTestRelay();
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' }, 'alice');
    await tab.next('command');
    for (const recorded of ['recorded', 'duplicate', 'duplicate']) {
      tab.send({ type: 'result', command_id: 'c1' }, { ok: true });
      expect(await tab.next('result_ack')).toMatchObject({ recorded });
    }
    expect((await waiting).json).toMatchObject({ outcome: 'completed', result: { ok: true } });
    const { json: stats } = await relay.rest('/dedup/stats?window_seconds=60');
    expect(stats).toMatchObject({ seen: 3, unique: 1, duplicates: 2, exact: true });
    const { command } = await relay.data(
      '{ command(userId: "alice", clientId: "tab", commandId: "c1") { outcome sightings { messageId count } history { nodes { kind } } } }',
    );
    expect(command).toEqual({
      outcome: 'COMPLETED',
      sightings: [{ messageId: 'c1:result:i1', count: 3 }],
      history: { nodes: [{ kind: 'COMMAND' }, { kind: 'RESULT' }] },
    });
  });
});

describe('ingestion over REST and GraphQL', () => {
  it('shares one deduplicator: a message ingested over REST is a duplicate over GraphQL', async () => {
    await using relay = await startTestRelay();
    expect((await relay.post('/ingest', event, 'alice:host')).json).toMatchObject({ items: [{ retained: true }] });
    const messages = `[
      { messageId: "m1", kind: "event", streamSuffix: "notes", clientId: "tab", instanceId: "i1" }
      { messageId: "m2", kind: "event", streamSuffix: "clients/x", clientId: "tab", instanceId: "i1" }
      { kind: "event", streamSuffix: "sites/a/events", clientId: "tab", instanceId: "i1", payload: { name: "n" } }
    ]`;
    const { ingestMessages } = await relay.data(
      `mutation { ingestMessages(messages: ${messages}) {
        ... on IngestResult { items { messageId stream retained duplicate published refusedBy error { code message errors { parameter } } } }
      } }`,
      { requester: 'alice:host' },
    );
    expect(ingestMessages.items).toMatchObject([
      { messageId: 'm1', stream: 'alice/notes', retained: false, duplicate: true, error: null },
      { messageId: 'm2', retained: false, duplicate: false, error: { code: 'reserved_stream', errors: [] } },
      { stream: 'alice/sites/a/events', retained: true, published: false, error: null },
    ]);
  });
});

describe('payload reads', () => {
  it('by an administrator are written to the audit log, once a request, and never with the payload', async () => {
    await using relay = await startTestRelay({ rawMessages: true });
    await relay.post('/ingest', { ...event, payload: { secret: 's3cret', ...LARGE } }, 'alice:host');
    const audits = () => relay.lines.filter((line) => line.includes('"audit":"payload"'));
    await relay.rest('/history/messages?stream=alice/notes');
    expect(audits()).toHaveLength(0);
    await relay.rest('/history/messages?stream=alice/notes&include_payload=true');
    expect(audits()).toHaveLength(1);
    await relay.rest('/history/raw-messages?values_only=true');
    await relay.rest('/history/raw-messages?stream=alice/notes');
    expect(audits().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { stream: 'alice/notes' },
      { stream: '*', view: 'raw' },
      { stream: 'alice/notes', view: 'raw' },
    ]);
    expect(relay.lines.join('\n')).not.toContain('s3cret');
  });
});

describe('large payloads of a relay with a spill directory', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'callboard-relay-spill-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const files = async (): Promise<string[]> => {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  };
  const states = async (relay: TestRelay): Promise<unknown> => {
    const { json } = await relay.rest('/history/command/alice/c1?include_payload=true');
    return (json?.['items'] as { payload_state: string }[]).map(({ payload_state }) => payload_state);
  };
  const complete = async (relay: TestRelay): Promise<void> => {
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1', params: LARGE }, 'alice');
    expect((await tab.next('command')).payload).toBe(JSON.stringify(LARGE));
    tab.send({ type: 'result', command_id: 'c1' }, LARGE);
    expect((await waiting).json).toMatchObject({ outcome: 'completed', result: LARGE });
  };

  it('are stored there as files, fetched on request, and unavailable when their file is gone', async () => {
    await using relay = await startTestRelay({ spillDir: root });
    await complete(relay);
    expect(await files()).toHaveLength(2);
    expect(await states(relay)).toEqual(['spilled_included', 'spilled_included']);
    for (const file of await files()) await unlink(file);
    expect(await states(relay)).toEqual(['unavailable', 'unavailable']);
    // The record still answers later requests for the result.
    const again = await relay.rest('/commands/alice/tab/c1', { requester: 'alice' });
    expect(again.json).toMatchObject({ outcome: 'completed', result: LARGE });
  });

  it('are removed by the hook once they have expired', async () => {
    const clock = new FakeClock(Date.now());
    await using relay = await startTestRelay({ spillDir: root, retentionMs: 60_000 }, { clock });
    await complete(relay);
    expect(await relay.callboard.core.history.cleanSpill()).toBe(0);
    await clock.leap(3600_000 + 60_000);
    expect(await relay.callboard.core.history.cleanSpill()).toBe(2);
    expect(await files()).toEqual([]);
  });

  it('go to an embedder’s store instead, which is never cleaned if it is not managed', async () => {
    const clock = new FakeClock(Date.now());
    let cleaned = 0;
    const own = createMemorySpill(clock, createCrypto('x'));
    const spill: SpillStore = { ...own, managed: false, clean: () => ++cleaned };
    await using relay = await startTestRelay({ spillDir: root }, { clock, spill });
    await complete(relay);
    expect(await states(relay)).toEqual(['spilled_included', 'spilled_included']);
    expect(await relay.callboard.core.history.cleanSpill()).toBe(0);
    expect([cleaned, await files()]).toEqual([0, []]);
  });
});
