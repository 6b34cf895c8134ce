/** Creates the credentials to print for a relay that was started without any. */
import type { Config } from '../config.ts';
import { signToken } from '../http/token.ts';

/** The user of the generated trial token. */
export const TRIAL_USER = 'demo';
/** How long the printed token is valid, in seconds: a day. */
const TRIAL_SECONDS = 24 * 3600;

/** Generated credentials of one run: the admin token, the secret, and a token of TRIAL_USER for one day. */
export type Credentials = { readonly adminToken: string; readonly secret: string; readonly userToken: string };

/** Returns the credentials to print; null if the configuration has no generated ones. */
export async function trialCredentials({ auth }: Config): Promise<Credentials | null> {
  const [adminToken] = auth.adminTokens;
  if (adminToken === undefined || auth.secret === null) return null;
  const userToken = await signToken({
    secret: auth.secret,
    user: TRIAL_USER,
    scopes: ['connect', 'invoke', 'host'],
    ttlSeconds: TRIAL_SECONDS,
    now: Date.now(),
    issuer: auth.issuer,
    audience: auth.audience,
  });
  return { adminToken, secret: auth.secret, userToken };
}
