/** Starts a relay for tests of the client libraries, with tokens for its users. */
import type { Callboard, Settings } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { openRelays } from '../../kit/topology.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

const admin = 'admin-token-of-the-tests';
const secret = 'a secret of the tests, long enough for HS256';

export type RealRelay = AsyncDisposable & {
  readonly callboard: Callboard;
  readonly url: string;
  /** The address for clients. With two relays, it is the address of the relay that callers do not use. */
  readonly linkUrl: string;
  readonly link: string;
  /** The token of an administrator. */
  readonly admin: string;
  readonly secret: string;
  token(user: string, ...scopes: string[]): Promise<string>;
};

/** Starts one relay in this process, or two if the run's topology has two, on free ports and with the real clock. */
export async function startRealRelay(settings: Partial<Settings> = {}): Promise<RealRelay> {
  const { callboard, url, linkUrl } = await openRelays({
    config: { ...settings, auth: { secret, adminTokens: [admin] } },
  });
  return {
    callboard,
    url,
    linkUrl,
    link: `${linkUrl.replace(/^http/, 'ws')}/connect`,
    admin,
    secret,
    token: (user, ...scopes) => signToken({ secret, user, scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() }),
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}
