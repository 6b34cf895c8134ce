/** The addresses, users and tokens of an episode. */
import { z } from 'zod';
import { signToken } from '../../src/http/token.ts';
import { ADMIN_TOKEN, SECRET } from '../outages/processes/relays.ts';

/** The addresses of the relays of an episode. In direct mode both are the same relay. */
export const SITE = z.object({
  /** The relays that receive requests. */
  urls: z.array(z.string()).min(1),
});
export type Site = z.infer<typeof SITE>;

export const HONEST = 'honest';
export const HOSTILE = 'hostile';
export { ADMIN_TOKEN };

/** How long tokens are valid: longer than any episode. */
const TOKEN_SECONDS = 7_200;
let signed = 0;

/** Signs a new token. Each call returns another text, because each token expires a second later than the one before. */
export function freshToken(user: string): Promise<string> {
  const ttlSeconds = TOKEN_SECONDS + (signed++ % TOKEN_SECONDS);
  return signToken({ secret: SECRET, user, scopes: ['connect', 'invoke', 'host'], ttlSeconds, now: Date.now() });
}

/** The n-th relay, cyclically. */
export function relayUrl({ urls }: Site, n: number): string {
  const url = urls[n % urls.length];
  if (url === undefined) throw new Error('a site without a relay');
  return url;
}

export function linkUrl(site: Site, n: number): string {
  return `${relayUrl(site, n).replace(/^http/, 'ws')}/connect`;
}
