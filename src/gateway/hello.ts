/** Handles `hello`: authenticates the peer, opens its session in core, and builds the `welcome`. */
import { requirePrincipal, requireScope, requireUser, type Principal } from '../core/auth/principal.ts';
import type { LinkSession } from '../core/commands/link-session.ts';
import type { Core } from '../core/core.ts';
import { requireDevice } from '../core/devices/device.ts';
import { fail, invalid } from '../core/errors.ts';
import { DEAD_MS, IN_FLIGHT, JSON_DEPTH, LARGE_MESSAGE_BYTES, MAX_FRAME_BYTES } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Pause } from '../core/pauses/pause.ts';
import { holderOf } from '../core/shares/holder.ts';
import type { Holdings } from '../core/shares/shares.ts';
import { FRAMES_PER_MESSAGE } from '../protocol/frame-codec.ts';
import type { DownHeader } from '../protocol/frames.ts';
import type { FrameWriter } from './socket.ts';
import { readAdvertised, readResumes, type Advertisement } from './payloads.ts';
import type { HelloFrame, RouterServices } from './services.ts';

type LinkRole = 'client' | 'caller';

/**
 * The result of an accepted `hello`. `session` is null for a caller. The link is counted in `holdings`; `releaseLink`
 * must be called when it ends.
 */
export type Handshake = {
  readonly holdings: Holdings;
  readonly principal: Principal;
  /** The id of the client; null for a caller. */
  readonly clientId: string | null;
  readonly session: LinkSession | null;
  readonly welcome: Extract<DownHeader, { type: 'welcome' }>;
};

type Hello = {
  readonly hello: HelloFrame;
  /** The address of the peer. */
  readonly address: string;
  /**
   * The number of bytes received up to the end of `hello`. They are charged to the token's user even if the hello is
   * refused.
   */
  readonly helloBytes: number;
};

/**
 * Checks the token, its scopes and the fields of the hello, in this order. Then claims the link's share, and binds the
 * client. Throws a CallboardError if a check fails, if the principal may not hold another link, or if the link has
 * ended. After an error, the share is not claimed.
 */
export async function openLink(
  services: RouterServices,
  { hello, address, helloBytes }: Hello,
  link: FrameWriter,
): Promise<Handshake> {
  const { core, authenticator, inbound, clock } = services;
  const readAt = clock.monotonic();
  const kind = hello.client_id === undefined ? 'caller' : 'client';
  const authenticated = await authenticator.authenticate(hello.token, address);
  if (authenticated?.kind === 'user') inbound.of(authenticated.userId).charge(helloBytes);
  const principal = admit(authenticated, kind);
  const { metadata, actions } = await advertisedIn(services, hello.payload, principal);
  // The link may have ended while the token was checked, for example because its page was reloaded. The page's next
  // instance may be connected to another relay by now. Binding this link would replace that instance, which would not
  // come back.
  if (!link.open) fail('not_connected', 'The link has ended.');
  if (kind === 'caller') {
    if (core.draining) fail('draining', 'This node takes no new links.');
    const holdings = claimLink(core, principal);
    return { principal, clientId: null, session: null, holdings, welcome: welcomeOf(services, principal, null) };
  }
  const clientId = hello.client_id ?? invalid('client_id', 'required');
  requireNotRevoked(services, principal, clientId);
  requireDevice(principal, clientId, hello.client_type ?? null);
  const request = {
    clientId,
    instanceId: hello.instance_id ?? invalid('instance_id', 'required for a client'),
    clientType: hello.client_type ?? invalid('client_type', 'required for a client'),
    places: hello.places === true,
    metadata,
    actions,
    resumes: readResumes(hello.payload, hello.link_attempt),
    // The next instance of the client may have connected while the token was checked; core compares the times.
    readMsAgo: clock.monotonic() - readAt,
  };
  const holdings = claimLink(core, principal);
  try {
    const session = await core.links.open(requireUser(principal, 'connect'), request, link);
    return { principal, clientId, session, holdings, welcome: welcomeOf(services, principal, session) };
  } catch (error) {
    releaseLink(holdings);
    throw error;
  }
}

/** Refuses the link of a revoked client. Tokens that are revoked for all clients were refused by the authenticator. */
export function requireNotRevoked({ core }: RouterServices, principal: Principal, clientId: string | null): void {
  if (core.revocations.find(principal, clientId)) fail('forbidden', 'The client was revoked.');
}

/** Reads the advertisement of a hello, when it is the user's turn. */
function advertisedIn(
  services: RouterServices,
  payload: string | null,
  principal: Principal,
): MaybePromise<Advertisement> {
  const read = (): Advertisement => readAdvertised(services, payload, principal);
  if (payload === null || payload.length < LARGE_MESSAGE_BYTES) return read();
  return services.core.messages.run(holderOf(principal), read, payload.length);
}

/**
 * Claims one unit each of the shares `links` and `sockets`. Throws a CallboardError, and claims neither, if the
 * principal may not hold both.
 */
function claimLink({ shares }: Core, principal: Principal): Holdings {
  const holdings = shares.of(holderOf(principal));
  holdings.claim('links', 1);
  try {
    holdings.claim('sockets', 1);
  } catch (error) {
    holdings.release('links', 1);
    throw error;
  }
  return holdings;
}

/** Releases the shares that a link claimed. Call it once, when the link ends. */
export function releaseLink(holdings: Holdings): void {
  holdings.release('links', 1);
  holdings.release('sockets', 1);
}

/**
 * Checks that a principal may open a link, and returns the principal. A client needs a user's token with the scope
 * `connect`. A caller needs the scope `invoke`, or an administrator's token.
 */
export function admit(principal: Principal | null, kind: LinkRole): Principal {
  const requester = requirePrincipal(principal);
  return kind === 'client' ? requireUser(requester, 'connect') : requireScope(requester, 'invoke');
}

function welcomeOf(
  { core, pingMs }: RouterServices,
  principal: Principal,
  session: LinkSession | null,
): Handshake['welcome'] {
  const { kind, connection, previous } = session?.result ?? {};
  return {
    type: 'welcome',
    node_id: core.nodeId,
    user_id: principal.kind === 'user' ? principal.userId : undefined,
    client_id: connection?.clientId,
    epoch: connection?.epoch,
    resumed: kind === undefined ? undefined : kind === 'resumed',
    replaced_instance_id: kind === 'replaced' ? previous?.instanceId : undefined,
    ping_ms: pingMs,
    dead_ms: DEAD_MS,
    max_frame_bytes: MAX_FRAME_BYTES,
    max_depth: JSON_DEPTH,
    frames_per_message: FRAMES_PER_MESSAGE,
    in_flight: IN_FLIGHT,
    idempotency_window_ms: core.idempotencyWindowMs,
    token_expires_at: principal.expiresAt ?? undefined,
    home: homeOf(core, principal),
    ...(connection && pauseMembers(core.pausedClients.of(connection))),
  };
}

type PauseMembers = Omit<Extract<DownHeader, { type: 'paused' }>, 'type'>;

/** Returns the members that describe the pause covering all calls of a client; an empty object if there is no pause. */
export function pauseMembers(pause: Pause | null): PauseMembers {
  if (pause === null) return {};
  const { by, reason, until } = pause;
  return { paused_by: `${by.kind} ${by.name}`, paused_reason: reason, ...(until !== null && { paused_until: until }) };
}

/** Returns the address of the relay nearest to the data of this user, if it is another relay; otherwise undefined. */
export function homeOf(core: Core, principal: Principal): string | undefined {
  return principal.kind === 'user' ? (core.homeOf(principal.userId) ?? undefined) : undefined;
}
