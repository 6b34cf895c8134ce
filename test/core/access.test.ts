/** Tests core's rule about which principals may read which user's data. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import type { Requester } from '../../src/core/core.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { admin, user } from '../kit/core.ts';
import { testRooms, type Rooms } from '../kit/rooms.ts';

const owner = user('alice', 'invoke');
const other = user('mallory', 'invoke');
const unscoped = user('alice', 'connect', 'host');

/** Returns what a requester gets: `rows`, `null`, or the code of the refusal. */
async function answer(ask: () => unknown): Promise<string> {
  try {
    const value: unknown = await ask();
    if (value === null) return 'null';
    return 'rows';
  } catch (error) {
    if (error instanceof CallboardError) return error.code;
    throw error;
  }
}

const reads: Record<string, (rooms: Rooms, requester: Requester, userId: string) => unknown> = {
  'connections.list': ({ connections }, requester, userId) => connections.list(requester, { userId }, {}),
  'connections.get': ({ connections }, requester, userId) => connections.get(requester, { userId, clientId: 'tab' }),
  'connections.events': ({ connections }, requester, userId) => connections.events(requester, userId),
  'history.streams': ({ history }, requester, userId) => history.streams(requester, userId, null, {}),
  'history.messages': ({ history }, requester, userId) =>
    history.messages(requester, { stream: `${userId}/clients/tab` }, {}),
  'history.ofCommand': ({ history }, requester, userId) => history.ofCommand(requester, userId, 'c1', {}),
  'users.get': ({ users }, requester, userId) => users.get(requester, userId),
};
/** The answer of each method about another user's rows. It is also the answer about rows that do not exist. */
const hidden: Record<string, string> = {
  'connections.list': 'not_found',
  'connections.get': 'null',
  'connections.events': 'not_found',
  'history.streams': 'not_found',
  'history.messages': 'null',
  'history.ofCommand': 'not_found',
  'users.get': 'null',
};

describe('read access', () => {
  let rooms: Rooms;
  beforeEach(async () => {
    rooms = testRooms();
    await rooms.backend.connections.connect(hello('alice', 'tab'));
    await rooms.backend.connections.connect(hello('bob', 'tab'));
    await rooms.backend.history.retain(newMessage({ commandId: 'c1' }));
    await rooms.backend.history.retain(newMessage({ commandId: 'c1', userId: 'bob' }));
  });

  describe.each(Object.entries(reads))('%s', (name, read) => {
    it('answers the owner and an administrator', async () => {
      expect(await answer(() => read(rooms, owner, 'alice'))).toBe('rows');
      expect(await answer(() => read(rooms, admin, 'alice'))).toBe('rows');
    });

    it('canonicalizes the named user', async () => {
      expect(await answer(() => read(rooms, owner, ' alice '))).toBe('rows');
      expect(await answer(() => read(rooms, admin, 'a\u0000'))).toBe('invalid_user');
    });

    it('answers for a foreign user as for an unknown one', async () => {
      expect(await answer(() => read(rooms, other, 'alice'))).toBe(hidden[name]);
      expect(await answer(() => read(rooms, other, 'nobody'))).toBe(hidden[name]);
    });

    it('refuses a wrong scope before it reveals ownership', async () => {
      for (const userId of ['alice', 'bob', 'nobody']) {
        expect(await answer(() => read(rooms, unscoped, userId))).toBe('forbidden');
      }
    });

    it('refuses a request without a token', async () => {
      expect(await answer(() => read(rooms, null, 'alice'))).toBe('unauthenticated');
    });
  });

  it('defaults to the requester, and to all users for an administrator', async () => {
    const usersOf = async (requester: Requester): Promise<string[]> =>
      (await rooms.connections.list(requester, {}, {})).nodes.map(({ userId }) => userId);
    expect(await usersOf(owner)).toEqual(['alice']);
    expect(await usersOf(admin)).toEqual(['alice', 'bob']);
    expect(await usersOf(other)).toEqual([]);
  });

  it('restricts lists over all users, and the sample of actions, to administrators', async () => {
    for (const ask of [
      (requester: Requester) => rooms.users.list(requester, {}),
      (requester: Requester) => rooms.actions.sample(requester, null),
    ]) {
      expect(await answer(() => ask(admin))).toBe('rows');
      expect(await answer(() => ask(owner))).toBe('forbidden');
      expect(await answer(() => ask(unscoped))).toBe('forbidden');
      expect(await answer(() => ask(null))).toBe('unauthenticated');
    }
  });

  it('sends a user the events of its own connections only', async () => {
    const mine = rooms.connections.events(owner, null);
    const all = rooms.connections.events(admin, null);
    const [alice, bob] = await rooms.backend.connections.get([
      { userId: 'alice', clientId: 'tab' },
      { userId: 'bob', clientId: 'tab' },
    ]);
    for (const connection of [bob, alice]) {
      if (!connection) throw new Error('not connected');
      rooms.backend.bus.publish('connections', { change: 'connected', connection, cause: null, at: 0 });
    }
    expect((await mine.next()).value.event.connection.userId).toBe('alice');
    expect((await all.next()).value.event.connection.userId).toBe('bob');
    expect((await all.next()).value.event.connection.userId).toBe('alice');
    await mine.return();
    expect((await mine.next()).done).toBe(true);
  });
});
