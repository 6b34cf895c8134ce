/** Repeatedly revokes tokens while they are in use, as an administrator over REST. */
import { decodeJwt } from 'jose';
import { signToken } from '../../../src/http/tokens.ts';
import { pick, seeded } from '../../lib/random.ts';
import type { FaultLog } from '../log/log.ts';
import type { createDriver, TokenHolder, TriedToken } from '../processes/driver.ts';
import { SECRET } from '../processes/relays.ts';
import type { World } from '../world.ts';
import { sleep } from './act.ts';
import { aliveOf, askAdmin, textsIn } from './pauses.ts';

/** How long the tokens are valid, in seconds. It is longer than any run. */
const TOKEN_SECONDS = 86_400;
/** The time between two revocations, in milliseconds. */
const IDLE_MS = 500;

type Revoking = {
  readonly driver: Pick<ReturnType<typeof createDriver>, 'hold'>;
  readonly log: FaultLog;
  readonly seed: number;
  readonly isOver: () => boolean;
};

/**
 * Revokes one token after the other. Each token is tried at each relay, over links that were opened before the
 * revocation, and over HTTP.
 */
export async function revokeAgainAndAgain(world: World, { driver, log, seed, isOver }: Revoking): Promise<void> {
  const random = seeded(seed);
  const revoked: TriedToken[] = [];
  while (!isOver()) {
    const token = await newToken(pick(random, world.who).user);
    await using holder = driver.hold(token);
    await tryAll(world, holder, ['http', 'link']);
    const [receipt] = await Promise.all([
      // Ignored: an answer that is lost with its relay promises nothing.
      askAdmin(aliveOf(world, random), 'POST', '/revocations', { token_id: token.id, reason: 'stolen' }).catch(
        () => null,
      ),
      tryAll(world, holder, ['http', 'link']),
    ]);
    if (receipt) {
      const [nodes, silent] = [textsIn(receipt['nodes']), textsIn(receipt['silent'])];
      log.write({ event: 'revoked', token: token.id, nodes, silent });
      revoked.push(token);
      await tryAll(world, holder, ['http', 'link']);
    }
    // A relay that has started since must not accept a token that was revoked before.
    await using earlier = driver.hold(pick(random, [token, ...revoked]));
    if (revoked.length > 0) await tryAll(world, earlier, ['http']);
    await sleep(IDLE_MS);
  }
}

async function newToken(user: string): Promise<TriedToken> {
  const now = Date.now();
  const text = await signToken({ secret: SECRET, user, scopes: ['invoke'], ttlSeconds: TOKEN_SECONDS, now });
  return { id: decodeJwt(text).jti ?? '', text, user };
}

async function tryAll({ relays }: World, holder: TokenHolder, ways: readonly ('http' | 'link')[]): Promise<void> {
  await Promise.all(relays.flatMap(({ name }) => ways.map((over) => holder.tryOnce(name, over))));
}
