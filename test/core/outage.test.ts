/** Tests a node whose store becomes unavailable and comes back. */
import { describe, expect, it } from 'vitest';
import type { ConnectionEvent } from '../../src/core/backend.ts';
import type { NodeListener } from '../../src/core/commands/node-store.ts';
import { CallboardError } from '../../src/core/errors.ts';
import type { Log } from '../../src/core/ports.ts';
import { settle } from '../kit/clock.ts';
import { NODE_BEAT_MS } from '../../src/core/limits.ts';
import { connect, testCore, user, type TestClient, type TestOptions } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const LATER_MS = 30_000;

type Line = { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };

/** Opens a core whose store a test can make unavailable. Returns the lines of its log too. */
async function leavingCore() {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, message, fields });
  const log: Log = { debug() {}, info: at('info'), warn: at('warn'), error: at('error') };
  const world: { fault: Error | null; listener: NodeListener | null } = { fault: null, listener: null };
  const failing =
    <A extends unknown[], R>(act: (...requested: A) => R) =>
    (...requested: A): R => {
      if (world.fault) throw world.fault;
      return act(...requested);
    };
  const wrap: TestOptions['wrap'] = (backend) => ({
    ...backend,
    connections: { ...backend.connections, list: failing(backend.connections.list) },
    nodes: {
      ...backend.nodes,
      attach(nodeId, listener) {
        world.listener = listener;
        return backend.nodes.attach(nodeId, listener);
      },
      beat: failing(backend.nodes.beat),
      due: failing(backend.nodes.due),
    },
  });
  const test = await testCore({ log, wrap });
  return { ...test, lines, world };
}

function away(): Error {
  return new CallboardError('store_unavailable', 'The store does not answer.', { retryAfterMs: 1000 });
}

describe('a node whose store becomes unavailable', () => {
  it('logs the beginning and the end of each outage once, with its duration', async () => {
    await using test = await leavingCore();
    const { lines, world, clock } = test;
    for (let outage = 0; outage < 2; outage++) {
      world.fault = away();
      await clock.advance(LATER_MS);
      expect(lines.splice(0)).toMatchObject([{ level: 'error', message: expect.stringContaining('is unavailable') }]);
      world.fault = null;
      await clock.advance(LATER_MS);
      const [back, ...more] = lines.splice(0);
      expect(back).toMatchObject({ level: 'info', message: 'the store is back' });
      expect(back?.fields.awayMs).toBeGreaterThan(LATER_MS - 2_000);
      expect(back?.fields.awayMs).toBeLessThanOrEqual(LATER_MS);
      expect(more).toEqual([]);
    }
  });

  it('logs every other error each time', async () => {
    await using test = await leavingCore();
    test.world.fault = new Error('a defect');
    await test.clock.advance(4_000);
    expect(test.lines.filter(({ message }) => message === 'beat failed')).toHaveLength(2);
    expect(test.lines.filter(({ message }) => message === 'reconciliation failed').length).toBeGreaterThan(2);
  });
});

describe('links of a dead node', () => {
  it('are published as disconnected by the node that reaped them, with their cause', async () => {
    await using test = await leavingCore();
    const received: ConnectionEvent[] = [];
    test.backend.bus.subscribe('connections', (event) => void received.push(event));
    await connect(test.core, user('alice'));
    const [connection] = await test.backend.connections.get([{ userId: 'alice', clientId: 'tab' }]);
    if (!connection) throw new Error('not connected');
    const lost = { ...connection, disconnectedAt: test.clock.now(), disconnectCause: 'node_lost' } as const;
    received.splice(0);
    test.world.listener?.linksLost([lost]);
    expect(received).toEqual([{ change: 'disconnected', connection: lost, cause: 'node_lost', at: test.clock.now() }]);
  });
});

describe('a node whose lease was recovered', () => {
  /** Opens a core that notes each move of a client’s queue. The move `again` is refused for these users. */
  async function movingCore(refused: ReadonlySet<string> = new Set()) {
    const requested: string[] = [];
    const world: { listener: NodeListener | null } = { listener: null };
    const test = await testCore({
      wrap: (backend) => ({
        ...backend,
        commands: {
          ...backend.commands,
          rebind(client, binding, link) {
            requested.push(`${client.userId} ${binding.epoch} ${link}`);
            if (link === 'again' && refused.has(client.userId)) throw away();
            return backend.commands.rebind(client, binding, link);
          },
        },
        nodes: {
          ...backend.nodes,
          attach(nodeId, given) {
            world.listener = given;
            return backend.nodes.attach(nodeId, given);
          },
        },
      }),
    });
    return { ...test, requested, revive: () => world.listener?.revived() };
  }

  it('queues once what was parked for its links', async () => {
    await using test = await movingCore();
    const { requested } = test;
    const client = await connect(test.core, user('alice'));
    await connect(test.core, user('bob'));
    unawaited(test.core.rpc.invoke(user('alice'), { userId: 'alice', clientId: 'tab', action: 'open', params: null }));
    await settle();
    const opened = requested.splice(0);
    expect(opened.map((link) => link.split(' ').at(-1))).toEqual(['up', 'up']);
    test.revive();
    await settle();
    expect(requested).toEqual(opened.map((link) => link.replace('up', 'again')));
    expect(client.sent).toHaveLength(1);
  });

  it('tries again with each beat until the store has queued it for each link that is still open', async () => {
    const refused = new Set<string>();
    await using test = await movingCore(refused);
    const { requested, clock } = test;
    const clients = new Map<string, TestClient>();
    for (const name of ['alice', 'bob', 'cleo']) clients.set(name, await connect(test.core, user(name)));
    requested.splice(0);
    refused.add('bob').add('cleo');
    test.revive();
    await settle();
    const moved = () => requested.splice(0).map((move) => move.replace(/ .* /, ' '));
    expect(moved()).toEqual(['alice again', 'bob again', 'cleo again']);
    await clock.advance(NODE_BEAT_MS);
    expect(moved()).toEqual(['bob again', 'cleo again']);
    refused.delete('bob');
    await clients.get('cleo')?.session.closed('client_closed');
    requested.splice(0);
    await clock.advance(NODE_BEAT_MS);
    expect(moved()).toContain('bob again');
    await clock.advance(3 * NODE_BEAT_MS);
    expect(moved().filter((move) => move.endsWith('again'))).toEqual([]);
  });
});
