import { z } from 'zod';
import { signToken } from '../../src/http/token.ts';
import { ADMIN_TOKEN, SECRET } from '../outages/processes/relays.ts';

/** The addresses of an episode's relays: the same one twice in direct mode. */
export const SITE = z.object({
  /** The relays that receive requests. */
  urls: z.array(z.string()).min(1),
});
export type Site = z.infer<typeof SITE>;

export const HONEST = 'honest';
export const HOSTILE = 'hostile';
export { ADMIN_TOKEN };

const TOKEN_SECONDS = 7_200;
let signed = 0;

/** A new token on each call: each is signed with another second of expiry. */
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
