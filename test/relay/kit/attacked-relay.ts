/** Starts a relay that tests send bad input to, with two users who must not notice that. */
import { expect } from 'vitest';
import { isCode } from '../../../src/protocol/codes.ts';
import type { RawStream } from '../../graphql/kit/stream.ts';
import { SECRET } from '../../http/kit/http-relay.ts';
import { admin } from '../../kit/core.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from './test-relay.ts';

/** The texts that occur in payloads and tokens, and that no log may contain. */
const SECRETS = ['planted-payload', 'planted-result', 'planted-metadata', 'planted-broken-token', SECRET];

/** A relay under attack, with two peaceful users: a client, and a subscriber of its events. */
export type AttackedRelay = TestRelay & {
  /** Advances the clock in steps. In each step the client answers pings. */
  pass(ms: number): Promise<void>;
  /** Checks that both users continue as before, and that no error of the process was unhandled. */
  sound(): Promise<void>;
  /** Checks at the end that nothing unexpected was logged, and that the log contains no secret. */
  clean(): void;
};

export async function startAttackedRelay(): Promise<AttackedRelay> {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  const at = await startTestRelay({}, {});
  const calm = await at.client({
    user: 'neighbour',
    client_id: 'calm',
    payload: { metadata: { note: 'planted-metadata' }, actions: [{ name: 'open' }] },
  });
  const events = await at.subscribe('subscription { connectionEvents { change missed } }', { requester: 'neighbour' });
  await events.until(':');
  let turn = 0;
  return {
    ...at,
    async pass(ms) {
      const key = { userId: 'neighbour', clientId: 'calm' };
      for (let left = ms; left > 0; left -= 20_000) {
        await at.clock.advance(Math.min(left, 20_000));
        calm.send({ type: 'pong' });
        await until(async () => (await at.callboard.core.connections.get(admin, key))?.lastSeenAt === at.clock.now());
      }
    },
    async sound() {
      turn++;
      await at.clock.advance(1000);
      await works(at, calm, turn);
      await subscribes(calm, events, turn);
      expect(unhandled).toEqual([]);
      expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    },
    clean() {
      const log = at.lines.join('\n');
      expect(log).not.toBe('');
      expect(SECRETS.filter((secret) => log.includes(secret))).toEqual([]);
      expect(at.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
      expect(calm.seen('command')).toHaveLength(turn);
      expect(calm.seen('refused')).toEqual([]);
    },
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      process.off('unhandledRejection', note);
      process.off('uncaughtException', note);
    },
  };
}

async function works(at: TestRelay, calm: Welcomed, turn: number): Promise<void> {
  const path = '/connections/neighbour/calm/actions/open';
  const invoked = at.post(path, { params: { secret: 'planted-payload', turn } }, 'neighbour');
  const { command_id } = await calm.next('command');
  calm.send({ type: 'result', command_id }, { secret: 'planted-result', turn });
  expect((await invoked).json).toMatchObject({ outcome: 'completed', result: { turn } });
}

async function subscribes(calm: Welcomed, events: RawStream, turn: number): Promise<void> {
  calm.send({ type: 'pong' });
  calm.send({ type: 'actions' }, { actions: [{ name: 'open', version: String(turn) }] });
  await events.until('"change":"ACTIONS_CHANGED","missed":0', turn);
  expect(events.text()).not.toContain('"errors"');
}

export function isStable(code: unknown): boolean {
  return isCode(code) && code !== 'internal';
}
