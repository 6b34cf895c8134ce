/**
 * The entry of requests to simulated relays: the request handler of a relay with all that it serves (REST, GraphQL, event
 * streams and links), without a server. Tokens say who their holders are, and nothing is signed.
 */
import * as yoga from 'graphql-yoga';
import type { Principal, Scope, TokenIdentity } from '../../src/core/auth/principal.ts';
import type { Core } from '../../src/core/core.ts';
import { CallboardError } from '../../src/core/errors.ts';
import type { Log } from '../../src/core/ports.ts';
import { createApp, type App } from '../../src/http/app.ts';
import { withGrants, withRevocations } from '../../src/http/authenticate-request.ts';
import type { BearerAuthenticator } from '../../src/http/authenticator.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { HttpServer, type HttpDoor } from './http-network.ts';
import type { Door } from './link-network.ts';
import { START } from './process.ts';
import { coreOf, onRecord, type OpenRelay } from './relays.ts';
import type { Simulation } from './virtual.ts';

/** The longest body of a request, in bytes. */
const BODY_BYTES = 1_000_000;
/** How long a relay that leaves waits for commands in flight, in milliseconds. */
const DRAIN_MS = 2_000;
/** How long requests in progress have when a relay leaves, in milliseconds. */
const LEFT_MS = 1_000;

/** Returns a token of a user, which is valid for a while. Two of them differ. */
export function userToken(simulation: Simulation, userId: string, scopes: readonly Scope[], ms = Infinity): string {
  const expiresAt = ms === Infinity ? '' : String(START + Math.floor(simulation.now) + ms);
  return ['user', userId, scopes.join('+'), expiresAt, Math.floor(simulation.random() * 1e9)].join(':');
}

/** Who holds a token. `expiresAt`, in epoch milliseconds: Infinity if it does not expire. */
type SignedToken = TokenIdentity & {
  readonly userId: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt: number;
};

/** Returns a token of a user that has an identity, as signed tokens have: it can be revoked. */
export function identifiedToken({ userId, scopes, expiresAt, id, issuedAt }: SignedToken): string {
  const expiry = expiresAt === Infinity ? '' : String(expiresAt);
  return ['user', userId, scopes.join('+'), expiry, id ?? '', issuedAt ?? ''].join(':');
}

export const ADMIN_TOKEN = 'admin:auditor';

/** Opens the entry of a relay, and its core. Ends them when the relay leaves. */
export async function openEntry(relay: OpenRelay, log: Log, core: Core = coreOf(relay, log)): Promise<Door & HttpDoor> {
  const { process } = relay;
  const { clock, crypto } = process;
  await core.start();
  const app = createApp({
    ...{ core, log, clock, meter: createMetrics(() => relay.clock.now()) },
    authenticator: withRevocations(
      withGrants(
        authenticatorOf(() => clock.now()),
        core.sites,
      ),
      core.revocations,
    ),
    ...{ basePath: '', version: 'simulated', origins: { allowedOrigins: [], trustProxy: false } },
    ...{ randomId: crypto.randomId, maxBodyBytes: BODY_BYTES, introspection: 'admin' },
    clientFiles: new URL('file:///none/'),
    loadYoga: () => Promise.resolve(yoga),
  });
  relay.core = core;
  const server = new HttpServer();
  relay.leave = () => leave(relay, { core, app, server });
  return {
    ...{ process, server, handler: app.requestHandler },
    accept: (socket, address) => app.accept(socket, address),
    onRecord: (run, holder) => onRecord(relay, run, holder),
  };
}

/** Ends a relay in the order in which `Callboard.close` does. */
async function leave(
  relay: OpenRelay,
  { core, app, server }: { readonly core: Core; readonly app: App; readonly server: HttpServer },
): Promise<void> {
  const { process } = relay;
  await core.drain(DRAIN_MS);
  await core.close();
  await new Promise<void>((turn) => process.loop.atTurnEnd(turn));
  await app.close();
  await new Promise<void>((done) => {
    onRecord(relay, done, { destroy: done });
    process.clock.after(LEFT_MS, done);
  });
  await server.close(process, LEFT_MS);
}

/** Reads the tokens of `userToken` and `identifiedToken`, and keeps the principals that it has authenticated. */
function authenticatorOf(now: () => number): BearerAuthenticator {
  const known = new Map<string, Principal>();
  const isOver = ({ expiresAt }: Principal): boolean => expiresAt !== null && now() >= expiresAt;
  return {
    recall(token) {
      const principal = known.get(token) ?? null;
      return principal && !isOver(principal) ? principal : null;
    },
    authenticate(token) {
      const principal = token === null ? null : principalOf(token);
      if (principal && isOver(principal))
        return Promise.reject(
          new CallboardError('unauthenticated', 'The token has expired.', { tokenFault: 'expired' }),
        );
      if (token !== null && principal) known.set(token, principal);
      return Promise.resolve(principal);
    },
  };
}

const SCOPES: readonly Scope[] = ['connect', 'invoke', 'host'];

function principalOf(token: string): Principal {
  const [kind, name = '', scopes = '', expiry = '', id = '', issuedAt] = token.split(':');
  if (kind === 'admin') return { kind, name, expiresAt: null };
  const named = scopes.split('+');
  const held = new Set(SCOPES.filter((scope) => named.includes(scope)));
  const identity = { id: id || null, issuedAt: issuedAt ? Number(issuedAt) : null };
  return {
    ...{ kind: 'user', userId: name, scopes: held, expiresAt: expiry === '' ? null : Number(expiry) },
    ...(issuedAt !== undefined && { token: identity }),
  };
}
