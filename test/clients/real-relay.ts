import { createCallboard, type Callboard, type Settings } from '../../src/callboard.ts';
import { signToken } from '../../src/http/token.ts';

const secret = 'a secret of the tests, long enough for HS256';

export type RealRelay = AsyncDisposable & {
  readonly callboard: Callboard;
  readonly url: string;
  readonly link: string;
  token(user: string, ...scopes: string[]): Promise<string>;
};

/** A whole relay in this process, on a free port, by the real clock. */
export async function startRealRelay(settings: Partial<Settings> = {}): Promise<RealRelay> {
  const callboard = createCallboard({ config: { ...settings, auth: { secret } } });
  const url = await callboard.listen({ port: 0 });
  return {
    callboard,
    url,
    link: `${url.replace(/^http/, 'ws')}/connect`,
    token: (user, ...scopes) => signToken({ secret, user, scopes, ttlSeconds: 600, now: Date.now() }),
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}
