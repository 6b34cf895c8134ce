/**
 * Admissions for which a process relies on a connection that the owner of the client told it of earlier: the owner
 * compares that connection with the present one.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import { SeenConnections } from '../../src/backends/owned/connections.ts';
import { decode } from '../../src/backends/owned/encoding.ts';
import { readMessage } from '../../src/backends/owned/transport.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { ALICE, admission, keyFor } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { Network } from '../contract/kit/owned-network.ts';
import { Relays } from '../contract/kit/owned-relays.ts';
import { FakeClock } from '../kit/clock.ts';
import { advertisement } from '../kit/core.ts';

const { userId, clientId } = ALICE;
const OPEN = [advertisement('open')];

describe('an admission that relies on a connection that its owner told of', () => {
  let clock: FakeClock;
  let network: Network;
  let relays: Relays;
  let here: Backend;
  let owner: Backend;
  let link: Connection;

  beforeEach(async () => {
    clock = new FakeClock();
    network = new Network(5);
    relays = new Relays({
      ...{ clock, requestClock: clock, partitions: 4 },
      join: (process) => network.join(process),
      mail: (nodeId, deliver) => network.inOrder(nodeId, deliver),
    });
    clock.alsoAwaits(() => network.quiet());
    [here, owner] = [relays.open('here'), relays.open('owner')];
    relays.giveAll(['owner']);
    link = await comeUp('i1');
  });

  const comeUp = async (instanceId: string): Promise<Connection> =>
    (await owner.connections.connect(hello(userId, clientId, { instanceId, actions: OPEN }))).connection;
  const lastSeen = (): Connection | null => here.connections.lastSeen?.(ALICE) ?? null;
  const see = async (): Promise<Connection> => {
    const [seen = null] = await here.connections.get([ALICE]);
    expect(lastSeen()).toEqual(seen);
    if (!seen) throw new Error('there is no connection');
    return seen;
  };
  const admit = async (seen: Connection, commandId = 'c1') => {
    const { kind } = await here.commands.admit(admission(commandId, { seen, connectWithinMs: 1_000 }));
    return kind;
  };

  it('is admitted while the client has this link and advertises the same, without a list of actions on the way', async () => {
    expect(lastSeen()).toBeNull();
    const seen = await see();
    network.sent.length = 0;
    expect(await admit(seen)).toBe('admitted');
    const [request] = network.sent.flatMap(({ text }) => readMessage(text) ?? []);
    const [sent] = decode(request?.body ?? '') as [AdmitRequest];
    expect(sent.seenLink).toMatchObject({ instanceId: 'i1', epoch: link.epoch });
    expect(request?.body).not.toContain('"actions"');
    // A call finds the connection without a request.
    expect(network.sent.filter(({ from }) => from === 'here').every(({ text }) => text.includes('admit'))).toBe(true);
  });

  it.each([
    [
      'the client advertises something else',
      () => owner.connections.advertise(ALICE, link.epoch, [advertisement('close')]),
    ],
    ['the same instance has a newer link', () => comeUp('i1')],
    ['another instance has replaced it', () => comeUp('i2')],
    ['its link is down', () => owner.connections.disconnect(ALICE, link.epoch, 'client_closed')],
  ])('is refused as outdated, and writes nothing, once %s', async (_what, happen) => {
    const seen = await see();
    await happen();
    expect(await admit(seen)).toBe('outdated');
    expect(await owner.commands.get([keyFor('c1')])).toEqual([null]);
    expect((await owner.inspector.summary()).trackedCommands).toBe(0);
  });

  it('attaches to a command with its id, whatever link the client has by then: the request may have been made before', async () => {
    const seen = await see();
    expect(await admit(seen)).toBe('admitted');
    await comeUp('i2');
    expect(await admit(seen)).toBe('attached');
    expect(await admit(seen, 'c2')).toBe('outdated');
  });

  it('counts if the partition has come to this process meanwhile', async () => {
    const seen = await see();
    await comeUp('i2');
    relays.giveAll(['here']);
    expect(lastSeen()).toBeNull();
    expect(await admit(seen)).toBe('outdated');
  });

  it('knows no connection that was read as lost', async () => {
    await see();
    await owner.connections.disconnect(ALICE, link.epoch, 'client_closed');
    await here.connections.get([ALICE]);
    expect(lastSeen()).toBeNull();
  });

  it('keeps the newest connections within a bound, and none with many texts', () => {
    const seen = new SeenConnections(createCrypto('test').sha256);
    const of = (n: number, chars: number): Connection => ({
      ...{ ...link, clientId: `c${n}` },
      actions: [{ ...advertisement('open'), description: 'x'.repeat(chars) }],
    });
    seen.note(of(0, 70_000));
    expect(seen.last({ userId, clientId: 'c0' })).toBeNull();
    for (let n = 1; n <= 400; n++) seen.note(of(n, 60_000));
    const kept = Array.from({ length: 400 }, (_, i) => seen.last({ userId, clientId: `c${i + 1}` }));
    const first = kept.findIndex((one) => one !== null);
    expect(first).toBeGreaterThan(100);
    expect(kept.slice(first).every((one) => one !== null)).toBe(true);
    expect(kept.length - first).toBeGreaterThan(250);
  });
});
