/** Reports ends of commands from instances that never received them. Relays must refuse these reports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signToken } from '../../../src/http/tokens.ts';
import type { ClientOrder } from './client-order.ts';
import { canaryOf, type Logged } from '../log/events.ts';
import { parseLog } from '../log/log.ts';

type Who = ClientOrder['clients'][number];
type Begun = Extract<Logged, { event: 'run-begin' }>;

/** The time that the relay may take to welcome the forger's link, in milliseconds. */
const ANSWER_MS = 3_000;
/** The time for which a forger stays connected, in milliseconds. The relay handles its frames in this time. */
const STAY_MS = 300;
/** The time for which the forger's token is valid, in seconds. The forger uses the token at once. */
const TOKEN_SECONDS = 3_600;

/**
 * Lets instances that never received the unfinished commands of the previous boot report them as completed, each over
 * its own link. No honest client does this. It tests that a relay accepts an end only from the instance to which the
 * command is bound.
 */
export async function forgeEnds(order: ClientOrder): Promise<void> {
  const begun = begunBefore(order);
  await Promise.all(
    order.clients.map((who) =>
      forge(
        order,
        who,
        begun.filter(({ user, client }) => user === who.user && client === who.client),
      ),
    ),
  );
}

function begunBefore({ folder, proc, boot }: ClientOrder): readonly Begun[] {
  const name = `${proc}.${Number(boot) - 1}.ndjson`;
  const { events } = parseLog(readFileSync(join(folder, name), 'utf8'), name);
  const ended = new Set(events.flatMap((event) => (event.event === 'run-end' ? [event.command] : [])));
  return events.filter((event) => event.event === 'run-begin').filter(({ command }) => !ended.has(command));
}

async function forge({ link, secret }: ClientOrder, { user, client }: Who, begun: readonly Begun[]): Promise<void> {
  if (begun.length === 0) return;
  const instance = `forger-${Math.random().toString(36).slice(2)}`;
  const token = await signToken({
    secret,
    user,
    scopes: ['connect'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });
  const socket = new WebSocket(link, 'callboard.v1');
  const wait = (name: string): Promise<void> =>
    new Promise((done) => {
      socket.addEventListener(name, () => done(), { once: true });
      setTimeout(done, ANSWER_MS).unref();
    });
  await wait('open');
  const ids = { client_id: client, instance_id: instance, client_type: 'console' };
  const welcomed = wait('message');
  socket.send(JSON.stringify({ type: 'hello', token, ...ids }));
  await welcomed;
  for (const key of begun) {
    const result = JSON.stringify({ canary: canaryOf(key), by: instance });
    socket.send(`${JSON.stringify({ type: 'result', command_id: key.command })}\n${result}`);
  }
  await new Promise((done) => setTimeout(done, STAY_MS));
  socket.close();
}
