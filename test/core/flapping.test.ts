/** Tests the events and log lines that a client causes by reconnecting again and again. */
import { describe, expect, it } from 'vitest';
import type { ConnectionEvent } from '../../src/core/backend.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { connect, testCore, user } from '../kit/core.ts';

const alice = user('alice');

type Line = { readonly message: string; readonly fields: Record<string, unknown> };

function linkLines(): { readonly lines: Line[]; readonly log: Log } {
  const lines: Line[] = [];
  const info: Log['info'] = (fields, message) => void (message.startsWith('link ') && lines.push({ message, fields }));
  return { lines, log: { ...silentLog, info } };
}

describe('a client that flaps', () => {
  it('is visible in its events: each replacement says why the earlier link was lost', async () => {
    await using at = await testCore();
    const subscription = at.core.connections.events(alice, null);
    const first = await connect(at.core, alice, { instanceId: 'i1' });
    const second = await connect(at.core, alice, { instanceId: 'i2' });
    await second.session.closed('back_pressure');
    await connect(at.core, alice, { instanceId: 'i3' });
    expect(first.closes).toEqual([{ cause: 'replaced', instanceId: 'i2' }]);
    const events: ConnectionEvent[] = [];
    for await (const { event } of subscription) if (events.push(event) === 4) break;
    expect(events.map(({ change, cause }) => [change, cause])).toEqual([
      ['connected', null],
      ['replaced', 'replaced'],
      ['disconnected', 'back_pressure'],
      ['replaced', 'back_pressure'],
    ]);
    const row = await at.core.connections.get(alice, { userId: 'alice', clientId: 'tab' });
    expect(row?.predecessors.map(({ instanceId, cause }) => [instanceId, cause])).toEqual([
      ['i2', 'back_pressure'],
      ['i1', 'replaced'],
    ]);
  });

  it('writes a log line for each link opened and closed, with client, cause and duration', async () => {
    const { lines, log } = linkLines();
    await using at = await testCore({ log });
    const names = { userId: 'alice', clientId: 'tab', nodeId: 'n1' };
    const first = await connect(at.core, alice, { instanceId: 'i1' });
    await at.clock.advance(1_500);
    await connect(at.core, alice, { instanceId: 'i2' });
    const [one, two] = [
      { ...names, instanceId: 'i1', epoch: 1 },
      { ...names, instanceId: 'i2', epoch: 2 },
    ];
    expect(lines).toEqual([
      { message: 'link opened', fields: { ...one, kind: 'connected' } },
      { message: 'link closed', fields: { ...one, cause: 'replaced', closeCode: null, durationMs: 1_500 } },
      { message: 'link opened', fields: { ...two, kind: 'replaced', replaced: 'i1', cause: 'replaced' } },
    ]);
    // A link that is closed twice is logged once.
    await first.session.closed('client_closed');
    expect(lines).toHaveLength(3);
  });
});
