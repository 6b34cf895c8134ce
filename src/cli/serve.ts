/** The command `callboard serve`. */
import { openCallboard, secretsIn, type Callboard } from '../callboard.ts';
import { readConfig, type Config } from '../config.ts';
import { DRAIN_MS } from '../core/limits.ts';
import { signToken } from '../http/token.ts';
import { createLog } from '../platform/log.ts';
import { activatedSocket } from './activated-socket.ts';
import { splitFlags } from './flags.ts';
import { allowHeapGrowth } from './heap-growth.ts';
import type { Io } from './io.ts';

/** The user of the generated trial token. */
const TRIAL_USER = 'demo';
const TRIAL_SECONDS = 24 * 3600;

/** Runs a relay until the first stop signal, then drains and closes it. */
export async function serve(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { switches: ['--json'] });
  const config = readConfig(io.env, rest);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  for (const warning of config.warnings) log.warn({}, warning);
  const callboard = await openCallboard({ config, log });
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  const url = await listen(callboard, config, activatedSocket(io.env, process.pid));
  const credentials = config.generated ? await trialCredentials(config) : null;
  io.print(own.has('--json') ? jsonLine(url, credentials) : greeting(url, callboard, credentials));
  allowHeapGrowth();
  await stopped;
  log.info({}, 'stopping');
  await callboard.close({ withinMs: DRAIN_MS });
  log.info({}, 'stopped');
}

/** Starts listening. If that fails, it closes the relay again and rethrows. */
async function listen(callboard: Callboard, { host, port }: Config, fd: number | null): Promise<string> {
  try {
    return await callboard.listen(fd === null ? { host, port } : { host, fd });
  } catch (error) {
    await callboard.close();
    throw error;
  }
}

type Credentials = { readonly adminToken: string; readonly secret: string; readonly userToken: string };

async function trialCredentials({ auth }: Config): Promise<Credentials | null> {
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

function jsonLine(url: string, credentials: Credentials | null): string {
  const generated = credentials && {
    admin_token: credentials.adminToken,
    secret: credentials.secret,
    user_token: credentials.userToken,
  };
  return `${JSON.stringify({ event: 'listening', url, ...generated })}\n`;
}

function greeting(url: string, { core }: Callboard, credentials: Credentials | null): string {
  const admin = credentials?.adminToken ?? '$CALLBOARD_ADMIN_TOKEN';
  const made = credentials
    ? `
No credentials are configured. These were generated for this run:
  admin token  ${credentials.adminToken}
  secret       ${credentials.secret}
  user token   ${credentials.userToken}
               (user "${TRIAL_USER}", scopes connect invoke host, one day)
`
    : '';
  return `callboard is listening at ${url} (${core.mode} mode, node ${core.nodeId})
  open  ${url}/         overview
        ${url}/graphql  GraphQL
${made}
Try:
  curl -H 'authorization: Bearer ${admin}' ${url}/users
  curl -H 'authorization: Bearer ${admin}' -H 'content-type: application/json' \\
    -d '{"query":"{ users { nodes { id connectionCount } } }"}' ${url}/graphql
`;
}
