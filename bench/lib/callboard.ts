/** Starts relays for benchmarks, and provides credentials, tokens and requests for using them. */
import { signToken } from '../../src/http/tokens.ts';
import { startChild, type Child } from './processes.ts';

export const ADMIN_TOKEN = 'an-admin-token-of-the-benchmark';
const SECRET = 'a secret of the benchmark, long enough for HS256';

/** Settings that give a relay these credentials, as environment variables. */
export const RELAY_ENV = { CALLBOARD_ADMIN_TOKEN: ADMIN_TOKEN, CALLBOARD_SECRET: SECRET } as const;

export type Relay = Child & { readonly url: string; readonly link: string };

export type RelayOptions = {
  readonly execArgv?: readonly string[];
  /** Whether the relay uses its JSON cache; default true. */
  readonly kept?: boolean;
  /** The folder of the relay's sources; absent: those of this checkout. */
  readonly source?: string;
};

/** Starts a relay in its own process. `env`: further settings, as CALLBOARD_ variables. */
export async function startRelay(
  env: Readonly<Record<string, string>> = {},
  { execArgv = [], ...more }: RelayOptions = {},
): Promise<Relay> {
  const options = { env: { ...RELAY_ENV, ...env }, ...more };
  const child = await startChild('servers/callboard.ts', { options, execArgv });
  const at = `127.0.0.1:${child.port}`;
  return Object.assign(child, { url: `http://${at}`, link: `ws://${at}/connect` });
}

export function userToken(user: string, ...scopes: string[]): Promise<string> {
  return signToken({ secret: SECRET, user, scopes, ttlSeconds: 24 * 3600, now: Date.now() });
}

/** Sends a request and returns the JSON of the answer. Throws unless the answer is successful. */
export async function askJson(url: string, { token, method = 'GET', body }: JsonRequest): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text.slice(0, 200)}`);
  return text === '' ? null : JSON.parse(text);
}

type JsonRequest = { readonly token: string; readonly method?: string; readonly body?: object };
