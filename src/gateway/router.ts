/** Passes each frame of a welcomed link to the part that handles it, and answers a frame that fails with a refusal. */
import { requireUser, subjectOf, type Principal } from '../core/auth/principal.ts';
import type { LinkSession } from '../core/commands/link-session.ts';
import type { LinkEnd } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, fail, invalid, notFound } from '../core/errors.ts';
import { toJson, trustJson, type JsonText, type Members } from '../core/json.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, ENVELOPE_PARTS } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Holdings } from '../core/shares/shares.ts';
import type { SiteDefinition } from '../core/sites/site-policy.ts';
import type { UpFrame } from '../protocol/frames.ts';
import { Callers, type CallerFrame } from './callers.ts';
import type { ReportFrame, Reports, GatewayParts, LinkPeer } from './client-link.ts';
import { aboutFrame, refusalOf, type OffendingFrame } from './close.ts';
import {
  BadPayload,
  arrayOf,
  flagIn,
  memberIn,
  objectOf,
  payloadOf,
  textIn,
  type FrameLimits,
} from './frame-limits.ts';
import {
  admit,
  readAdvertisement,
  readReport,
  releaseLink,
  type Handshake,
  type HelloFrame,
  type LinkRole,
} from './hello.ts';
import type { FrameWriter } from './socket.ts';

/** The frames of a welcomed link other than clients' reports and callers' requests. */
type ControlFrame = Exclude<UpFrame, HelloFrame | ReportFrame | CallerFrame | { type: 'leave' }>;

type FrameRouterOutputs = {
  readonly writer: FrameWriter;
  readonly limits: FrameLimits;
  readonly reports: Reports;
};

/** The dependencies of a FrameRouter. `address`: the peer's address. */
type FrameRouterParts = {
  readonly parts: GatewayParts;
  readonly outputs: FrameRouterOutputs;
  readonly address: string;
};

/** Handles the frames of a link between `welcome` and its end. Its methods neither throw nor reject. */
export class FrameRouter {
  readonly #parts: GatewayParts;
  readonly #writer: FrameWriter;
  readonly #limits: FrameLimits;
  readonly #reports: Reports;
  readonly #address: string;
  /** The handler of callers' requests. Created with the first request, because most client links never send one. */
  #callers: Callers | null = null;
  readonly #session: LinkSession | null;
  readonly #kind: LinkRole;
  readonly #holdings: Holdings;
  #principal: Principal;
  readonly #openedAt: number;
  #leaving = false;

  constructor({ parts, outputs, address }: FrameRouterParts, { principal, session, holdings }: Handshake) {
    this.#parts = parts;
    this.#writer = outputs.writer;
    this.#limits = outputs.limits;
    this.#reports = outputs.reports;
    this.#address = address;
    this.#session = session;
    this.#kind = session ? 'client' : 'caller';
    this.#principal = principal;
    this.#holdings = holdings;
    this.#openedAt = parts.clock.monotonic();
    if (!session) parts.log.debug({ requester: subjectOf(principal), nodeId: parts.core.nodeId }, 'caller link opened');
  }

  /** Whether the token has expired, by the wall clock. */
  get expired(): boolean {
    const { expiresAt } = this.#principal;
    return expiresAt !== null && this.#parts.clock.now() >= expiresAt;
  }

  get peer(): LinkPeer {
    return this.#session?.clientType ?? 'caller';
  }

  take(frame: Exclude<UpFrame, HelloFrame>): void {
    switch (frame.type) {
      case 'ack':
      case 'progress':
      case 'result':
      case 'error':
      case 'cancelled':
        return this.#report(frame);
      case 'invoke':
      case 'await':
      case 'cancel':
        return this.#request(frame);
      case 'leave':
        return this.#ensureCallers().leave(frame.ref);
      default:
        this.#takeControl(frame);
    }
  }

  #takeControl(frame: ControlFrame): void {
    const limits = this.#limits;
    const about = aboutFrame(frame);
    switch (frame.type) {
      case 'pong':
        return void limits.countUnsolicited(about);
      case 'closing':
        if (limits.countUnsolicited(about)) this.#run(about, () => this.#leave());
        return;
      case 'auth':
        if (limits.countUnsolicited(about)) this.#run(about, () => this.#renew(frame.token));
        return;
      case 'actions':
        if (limits.countUnsolicited(about)) this.#run(about, () => this.#advertise(frame.payload));
        return;
      case 'report':
        if (limits.countUnsolicited(about)) this.#run(about, () => this.#reportRows(frame.payload));
        return;
      case 'site':
        if (limits.countUnsolicited(about)) this.#run(about, () => this.#host(frame));
    }
  }

  /**
   * Handles a frame that arrives while the link is closing. Ends of commands that the client sent before it knew of the
   * close are still recorded.
   */
  takeLate(frame: UpFrame): void {
    const isEnd = frame.type === 'result' || frame.type === 'error' || frame.type === 'cancelled';
    if (isEnd) this.#report(frame);
  }

  /** Reports a sign of life to core. Closes the link with `node_lost` if the client is no longer bound to this link. */
  touch(): void {
    const session = this.#session;
    if (!session) return;
    this.#run({}, async () => {
      if ((await isBound(session)) === false) this.#writer.close('node_lost');
    });
  }

  /** Tells core that the socket is no longer behind, or that nothing has arrived from the peer for STALE_MS. */
  tell(what: 'drained' | 'silent'): void {
    const session = this.#session;
    if (session) this.#run({}, () => session[what]());
  }

  /** Releases the share and ends the waits and the session, once. Resolves when core recorded the end, or failed to. */
  async end(end: LinkEnd): Promise<void> {
    releaseLink(this.#holdings);
    this.#callers?.leaveAll();
    if (!this.#session) return this.#callerLeft(end);
    try {
      await this.#session.closed(end.cause, end.closeCode);
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the end of a link could not be recorded');
    }
  }

  #callerLeft({ cause, closeCode }: LinkEnd): void {
    const { clock, core, log, metrics } = this.#parts;
    metrics.count('links_closed', cause);
    const durationMs = clock.monotonic() - this.#openedAt;
    const requester = subjectOf(this.#principal);
    log.debug({ requester, nodeId: core.nodeId, cause, closeCode, durationMs }, 'caller link closed');
  }

  #ensureCallers(): Callers {
    return (this.#callers ??= new Callers({ core: this.#parts.core, writer: this.#writer, limits: this.#limits }));
  }

  #request(frame: CallerFrame): void {
    const callers = this.#ensureCallers();
    if (callers.allows(frame)) callers.take(frame, this.#principal, (error) => this.#failed(error, frame));
  }

  #report(frame: ReportFrame): void {
    const reports = this.#reports;
    const session = this.#session;
    if (!session) this.#run(frame, () => this.#clientSession('runs no commands'));
    else if (reports.allows(frame)) this.#run(frame, () => reports.take(frame, session));
  }

  async #renew(token: string): Promise<void> {
    const renewed = admit(await this.#parts.authenticator.authenticate(token, this.#address), this.#kind);
    if (subjectOf(renewed) !== subjectOf(this.#principal)) fail('forbidden', 'The token belongs to another user.');
    if (this.#session?.host) requireUser(renewed, 'host');
    this.#principal = renewed;
    this.#writer.send({ type: 'renewed', token_expires_at: renewed.expiresAt ?? undefined });
  }

  /** Handles `closing`. Sends `closed` after all commands, so the client reads every command before it. */
  async #leave(): Promise<void> {
    const session = this.#clientSession('runs no commands');
    this.#leaving = true;
    const commands = await session.leave();
    this.#writer.send({ type: 'closed' }, toJson({ commands }));
  }

  async #advertise(payload: string | null): Promise<void> {
    const session = this.#activeSession('advertises nothing');
    const connection = await session.advertise(readAdvertisement(payload, this.#parts.actionLists).actions);
    if (connection === null) this.#writer.close('node_lost');
  }

  async #reportRows(payload: string | null): Promise<void> {
    const session = this.#activeSession('reports nothing');
    const outcome = await session.report(readReport(payload));
    if (outcome === 'full')
      fail('capacity_exceeded', `A client has at most ${CLIENT_CONTEXTS} contexts and ${CLIENT_WINDOWS} windows.`);
    if (outcome === 'fenced') this.#writer.close('node_lost');
  }

  async #host(frame: SiteFrame): Promise<void> {
    const { core } = this.#parts;
    await takeSite(frame, { core, session: this.#activeSession('hosts nothing'), principal: this.#principal });
    this.#writer.send({ type: 'site_ack', ref: frame.ref });
  }

  #clientSession(otherwise: string): LinkSession {
    return this.#session ?? fail('forbidden', `This link has no client id: it ${otherwise}.`);
  }

  /** Returns the session. Throws `not_connected` after `closing`, because the client then counts as disconnected. */
  #activeSession(otherwise: string): LinkSession {
    if (this.#leaving) fail('not_connected', 'This client has announced that it is closing.');
    return this.#clientSession(otherwise);
  }

  #run(about: OffendingFrame | UpFrame, work: () => MaybePromise<unknown>): void {
    try {
      const done = work();
      if (done instanceof Promise) done.catch((error: unknown) => this.#failed(error, about));
    } catch (error) {
      this.#failed(error, about);
    }
  }

  #failed(error: unknown, of: OffendingFrame | UpFrame): void {
    const about = 'type' in of ? aboutFrame(of) : of;
    if (error instanceof BadPayload) this.#limits.refuseBadFrame(error.message, about);
    else this.#writer.refuse(refusalOf(error, this.#parts), about);
  }
}

/** Returns whether the client is bound to this link. Null while the store is unavailable: the link then stays open. */
async function isBound(session: LinkSession): Promise<boolean | null> {
  try {
    return await session.alive();
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'store_unavailable') return null;
    throw error;
  }
}

// Handles `site` frames: a client registers or removes a cooperative site.

type SiteFrame = Extract<UpFrame, { type: 'site' }>;

type Hosting = {
  readonly core: Pick<Core, 'sites'>;
  readonly session: LinkSession;
  readonly principal: Principal;
};

/** Registers or removes a site that the link's client hosts. Rejects with a CallboardError or BadPayload. */
async function takeSite(frame: SiteFrame, { core, session, principal }: Hosting): Promise<void> {
  const { host, clientId } = session;
  requireUser(principal, 'host');
  if (!host) fail('forbidden', 'The token in the hello of this link lacks the scope "host".');
  if (frame.op === 'remove') {
    if (!(await core.sites.remove(principal, frame.site_id))) notFound();
    return;
  }
  const definition = readDefinition(payloadOf(frame));
  await core.sites.register(principal, { ...definition, siteId: frame.site_id, clientId });
}

/** Reads a site definition. Unknown members are ignored. */
function readDefinition(payload: JsonText | null): Omit<SiteDefinition, 'siteId' | 'clientId'> {
  const given = payload === null || payload.trim() === 'null' ? trustJson('{}') : payload;
  const members = objectOf('payload', given);
  const profile = memberIn(members, 'capability_profile');
  return {
    title: textIn('title', memberIn(members, 'title')),
    eventNames: readNames('event_names', memberIn(members, 'event_names')),
    actions: readNames('actions', memberIn(members, 'actions')),
    capabilityProfile: profile === null ? null : readProfile(objectOf('capability_profile', profile)),
  };
}

function readProfile(members: Members): NonNullable<SiteDefinition['capabilityProfile']> {
  const flag = (member: string): boolean => flagIn(`capability_profile.${member}`, memberIn(members, member)) ?? false;
  return { actionInvocation: flag('action_invocation'), sharing: flag('sharing') };
}

function readNames(where: string, json: JsonText | null): readonly string[] | null {
  if (json === null) return null;
  return arrayOf(where, json, ENVELOPE_PARTS).map(
    (item, i) => textIn(`${where}[${i}]`, item) ?? invalid(`${where}[${i}]`, 'a string was expected'),
  );
}
