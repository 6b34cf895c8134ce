/** Tests what core publishes when the gateway says that a client is silent. */
import { expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');

/** Records the changes of connections from now on. */
function changesOf({ backend }: Pick<TestCore, 'backend'>): string[] {
  const changes: string[] = [];
  backend.bus.subscribe('connections', ({ change, connection }) => changes.push(`${change} ${connection.epoch}`));
  return changes;
}

it('publishes the row of the silent link', async () => {
  await using at = await testCore();
  const { session } = await connect(at.core, alice);
  const changes = changesOf(at);
  await session.silent();
  expect(changes).toEqual(['stale 1']);
});

it('publishes nothing of a link that was replaced, or whose client has left', async () => {
  await using at = await testCore();
  const first = await connect(at.core, alice);
  const second = await connect(at.core, alice);
  await second.session.leave();
  const changes = changesOf(at);
  await first.session.silent();
  await second.session.silent();
  expect(changes).toEqual([]);
});

it.each([
  ['store_unavailable', []],
  ['internal', ['could not publish that a link is silent']],
] as const)('publishes nothing if the row cannot be read (%s)', async (code, warnings) => {
  let away = false;
  const wrap = (backend: MemoryBackend): MemoryBackend => {
    const { get } = backend.connections;
    const read: typeof get = (keys) => (away ? Promise.reject(new CallboardError(code, 'Away.')) : get(keys));
    return { ...backend, connections: { ...backend.connections, get: read } };
  };
  const warned: string[] = [];
  const warn = (_fields: object, text: string): void => void warned.push(text);
  await using at = await testCore({ wrap, log: { debug() {}, info() {}, warn, error() {} } });
  const { session } = await connect(at.core, alice);
  const changes = changesOf(at);
  away = true;
  await session.silent();
  expect([changes, warned]).toEqual([[], warnings]);
});
