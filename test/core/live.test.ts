/** Tests the queue of a subscription: its order, its bound and its count of missed events. */
import { describe, expect, it } from 'vitest';
import { createFeed, type LiveEvent, type Subscription } from '../../src/core/live.ts';

function feedOf<T>(bound?: number) {
  let ends = 0;
  const feed = createFeed<T>(() => ends++, bound);
  return { ...feed, ends: () => ends };
}

async function take<T>(subscription: Subscription<T>, count: number): Promise<LiveEvent<T>[]> {
  const taken: LiveEvent<T>[] = [];
  for (let i = 0; i < count; i++) {
    const { value, done } = await subscription.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

describe('a subscription', () => {
  it('returns events in the order pushed, also to a reader that waited first', async () => {
    const { subscription, push } = feedOf<number>();
    const waiting = subscription.next();
    push(1);
    push(2);
    expect(await waiting).toEqual({ value: { event: 1, missed: 0 }, done: false });
    expect(await take(subscription, 1)).toEqual([{ event: 2, missed: 0 }]);
  });

  it('holds 100 events, drops the oldest, and reports exactly how many with the next', async () => {
    const { subscription, push } = feedOf<number>();
    for (let i = 0; i < 100; i++) push(i);
    expect(await take(subscription, 1)).toEqual([{ event: 0, missed: 0 }]);
    for (let i = 100; i < 138; i++) push(i);
    const taken = await take(subscription, 100);
    expect(taken[0]).toEqual({ event: 38, missed: 37 });
    expect(taken.slice(1).map(({ missed }) => missed)).toEqual(Array.from({ length: 99 }, () => 0));
    expect(taken.at(-1)?.event).toBe(137);
  });

  it('accounts for each event, as delivered or as missed, at any pace', async () => {
    const { subscription, push } = feedOf<number>(3);
    let seen = 0;
    for (let round = 1; round <= 10; round++) {
      for (let i = 0; i < round; i++) push(i);
      for (const { missed } of await take(subscription, Math.min(round, 2))) seen += 1 + missed;
    }
    while (seen < 55) for (const { missed } of await take(subscription, 1)) seen += 1 + missed;
    expect(seen).toBe(55);
  });

  it('loses nothing for a reader that keeps up', async () => {
    const { subscription, push, end } = feedOf<number>(2);
    const reading = (async () => {
      const all: LiveEvent<number>[] = [];
      for await (const live of subscription) all.push(live);
      return all;
    })();
    for (let i = 0; i < 20; i++) {
      push(i);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    end();
    const all = await reading;
    expect(all.reduce((sum, { missed }) => sum + 1 + missed, 0)).toBe(20);
  });

  it('delivers queued events before it ends', async () => {
    const { subscription, push, end, ends } = feedOf<string>();
    push('a');
    end();
    push('after the end');
    expect(await take(subscription, 5)).toEqual([{ event: 'a', missed: 0 }]);
    expect((await subscription.next()).done).toBe(true);
    expect(ends()).toBe(1);
  });

  it('fails at once, for waiting and for later readers', async () => {
    const { subscription, push, fail, ends } = feedOf<string>();
    push('a');
    fail(new Error('gone'));
    await expect(subscription.next()).rejects.toThrow('gone');
    await expect(subscription.next()).rejects.toThrow('gone');
    const other = feedOf<string>();
    const waiting = other.subscription.next();
    other.fail(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    expect([ends(), other.ends()]).toEqual([1, 1]);
  });

  it('frees its resources once, when its reader leaves', async () => {
    const { subscription, push, end, ends } = feedOf<string>();
    push('a');
    push('b');
    for await (const { event } of subscription) {
      expect(event).toBe('a');
      break;
    }
    expect(ends()).toBe(1);
    expect((await subscription.next()).done).toBe(true);
    end();
    await subscription.return();
    expect(ends()).toBe(1);
  });

  it('ends the pending read of a reader that leaves', async () => {
    const { subscription } = feedOf<string>();
    const waiting = subscription.next();
    await subscription.return();
    expect((await waiting).done).toBe(true);
  });
});
