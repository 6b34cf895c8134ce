/** Handles `hello`: authenticates the peer, opens its session in core and builds the `welcome`. */
import {
  requirePrincipal,
  requireScope,
  requireUser,
  type Authenticator,
  type Principal,
} from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { ClientLink, LinkSession } from '../core/delivery/link.ts';
import { fail, invalid } from '../core/errors.ts';
import { DEAD_MS, IN_FLIGHT, MAX_FRAME_BYTES, PING_MS } from '../core/limits.ts';
import type { ByteRates } from '../core/shares/byte-rate.ts';
import { holderOf } from '../core/shares/holders.ts';
import type { Holdings } from '../core/shares/shares.ts';
import { FRAMES_PER_MESSAGE } from '../protocol/frame.ts';
import type { DownHeader, UpFrame } from '../protocol/frames.ts';
import type { ActionLists } from './action-lists.ts';
import { readAdvertisement } from './hello.ts';

export type HelloFrame = Extract<UpFrame, { type: 'hello' }>;
export type LinkRole = 'client' | 'caller';

/**
 * The result of an accepted `hello`. `session` is null for a link without a client id. The link is counted in
 * `holdings`, and must be released there when it ends.
 */
export type Handshake = {
  readonly holdings: Holdings;
  readonly principal: Principal;
  readonly session: LinkSession | null;
  readonly welcome: DownHeader;
};

type HandshakeParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  readonly actionLists: ActionLists;
  /** The peer's address. */
  readonly address: string;
  /**
   * The number of bytes received up to and including `hello`. They count for the token's user even if `hello` is
   * refused.
   */
  readonly helloBytes: number;
};

/**
 * Checks the token, its scopes and the fields of the hello, in this order. Then claims the link's share, and binds a
 * client. Throws a CallboardError, also when the user or the administrator may not hold another link. The share stays
 * claimed only if the link opens.
 */
export async function openLink(
  { core, authenticator, inbound, actionLists, address, helloBytes }: HandshakeParts,
  hello: HelloFrame,
  link: ClientLink,
): Promise<Handshake> {
  const kind = kindOf(hello);
  const authenticated = await authenticator.authenticate(hello.token, address);
  if (authenticated?.kind === 'user') inbound.of(authenticated.userId).charge(helloBytes);
  const principal = admit(authenticated, kind);
  const { metadata, actions } = readAdvertisement(hello.payload, actionLists);
  if (kind === 'caller') {
    if (core.draining) fail('draining', 'This node takes no new links.');
    const holdings = claimLink(core, principal);
    return { principal, session: null, holdings, welcome: welcomeOf(core, principal, null) };
  }
  const request = {
    clientId: hello.client_id ?? invalid('client_id', 'required'),
    instanceId: hello.instance_id ?? invalid('instance_id', 'required for a client'),
    clientType: hello.client_type ?? invalid('client_type', 'required for a client'),
    metadata,
    actions,
  };
  const holdings = claimLink(core, principal);
  try {
    const session = await core.links.open(requireUser(principal, 'connect'), request, link);
    return { principal, session, holdings, welcome: welcomeOf(core, principal, session) };
  } catch (error) {
    releaseLink(holdings);
    throw error;
  }
}

/** Claims a link, and its socket. Throws a CallboardError, and claims neither, if the principal may not hold both. */
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

/** Releases what a link claimed. Call it once, when the link ends. */
export function releaseLink(holdings: Holdings): void {
  holdings.release('links', 1);
  holdings.release('sockets', 1);
}

export function kindOf(hello: HelloFrame): LinkRole {
  return hello.client_id === undefined ? 'caller' : 'client';
}

/**
 * Checks that this principal may open a link, and returns it. A client needs a user's token with the scope `connect`. A
 * caller needs the scope `invoke` or an administrator's token.
 */
export function admit(principal: Principal | null, kind: LinkRole): Principal {
  const requester = requirePrincipal(principal);
  return kind === 'client' ? requireUser(requester, 'connect') : requireScope(requester, 'invoke');
}

function welcomeOf(core: Core, principal: Principal, session: LinkSession | null): DownHeader {
  const { kind, connection, previous } = session?.result ?? {};
  return {
    type: 'welcome',
    node_id: core.nodeId,
    user_id: principal.kind === 'user' ? principal.userId : undefined,
    client_id: connection?.clientId,
    epoch: connection?.epoch,
    resumed: kind === undefined ? undefined : kind === 'resumed',
    replaced_instance_id: kind === 'replaced' ? previous?.instanceId : undefined,
    ping_ms: PING_MS,
    dead_ms: DEAD_MS,
    max_frame_bytes: MAX_FRAME_BYTES,
    frames_per_message: FRAMES_PER_MESSAGE,
    in_flight: IN_FLIGHT,
    idempotency_window_ms: core.idempotencyWindowMs,
    token_expires_at: principal.expiresAt ?? undefined,
  };
}
