/** Defines the URLs, users and tokens of an episode, which is one attack beside an honest user. */
import { z } from 'zod';
import { signToken } from '../../src/http/tokens.ts';
import { ADMIN_TOKEN, SECRET } from '../outages/processes/relays.ts';

/** The form of the URLs of an episode's relays. In direct mode all URLs are those of the same relay. */
export const SITE = z.object({
  /** The URLs of the relays that receive requests. */
  urls: z.array(z.string()).min(1),
});
export type Site = z.infer<typeof SITE>;

export const HONEST = 'honest';
export const HOSTILE = 'hostile';
/** A user who holds nothing until it connects a client during the attack. */
export const NEWCOMER = 'newcomer';
export { ADMIN_TOKEN };

/** How long tokens are valid, in seconds. It is longer than any episode. */
const TOKEN_SECONDS = 7_200;
let signed = 0;

/** Signs a new token. Each token differs from the previous one by an expiry that is one second later. */
export function freshToken(user: string): Promise<string> {
  const ttlSeconds = TOKEN_SECONDS + (signed++ % TOKEN_SECONDS);
  return signToken({ secret: SECRET, user, scopes: ['connect', 'invoke', 'host'], ttlSeconds, now: Date.now() });
}

/** Returns the URL of the relay with number n, counted in a circle. */
export function relayUrl({ urls }: Site, n: number): string {
  const url = urls[n % urls.length];
  if (url === undefined) throw new Error('a site without a relay');
  return url;
}

export function linkUrl(site: Site, n: number): string {
  return `${relayUrl(site, n).replace(/^http/, 'ws')}/connect`;
}
