/** Tests what links are told of the relay that is nearest to their user's data. */
import { describe, expect, test } from 'vitest';
import type { Core } from '../../src/core/core.ts';
import { caller, client, startGateway } from './kit/test-gateway.ts';

/** A deployment whose homes a test sets, by user. */
class Homes {
  readonly of = new Map<string, string>();
  #told: (concerns: (userId: string) => boolean) => void = () => {};

  readonly wrap = (core: Core): Core => ({
    ...core,
    homeOf: (userId) => this.of.get(userId) ?? null,
    onHome: (run) => {
      this.#told = run;
      return () => {};
    },
  });

  move(userId: string, home: string | null): void {
    if (home === null) this.of.delete(userId);
    else this.of.set(userId, home);
    this.#told((one) => one === userId);
  }
}

const B = 'ws://b.example/connect';

describe('a link', () => {
  test('is told the home of its user in welcome, if there is one', async () => {
    const homes = new Homes();
    homes.of.set('alice', B);
    await using at = await startGateway({ wrap: homes.wrap });
    expect((await client(at, {})).welcome.home).toBe(B);
    expect((await caller(at)).welcome.home).toBe(B);
    expect((await caller(at, 'user:bob:invoke')).welcome.home).toBeUndefined();
    // An administrator has no data of their own.
    expect((await caller(at, 'admin')).welcome.home).toBeUndefined();
  });

  test('is told when the home is another one, once, and when there is none any more', async () => {
    const homes = new Homes();
    await using at = await startGateway({ wrap: homes.wrap });
    const alice = await client(at, {});
    const bob = await caller(at, 'user:bob:invoke');
    homes.move('alice', B);
    expect((await alice.next('home')).url).toBe(B);
    homes.move('alice', B);
    homes.move('alice', null);
    expect((await alice.next('home')).url).toBeUndefined();
    homes.move('alice', null);
    homes.move('bob', B);
    expect((await bob.next('home')).url).toBe(B);
    alice.send({ type: 'auth', token: 'none' });
    await alice.next('refused');
    expect([alice, bob].map((peer) => peer.seen('home').length)).toEqual([2, 1]);
  });

  test('that leaves is told nothing', async () => {
    const homes = new Homes();
    await using at = await startGateway({ wrap: homes.wrap });
    const alice = await client(at, {});
    alice.send({ type: 'closing' });
    await alice.next('closed');
    homes.move('alice', B);
    alice.send({ type: 'auth', token: 'none' });
    await alice.next('refused');
    expect(alice.seen('home')).toEqual([]);
  });
});
