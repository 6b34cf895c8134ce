/** Passes each frame of an open link to the part of core that handles it, and sends the answers. */
import { requireUser, subjectOf, type Principal } from '../core/auth/principal.ts';
import type { LinkSession } from '../core/commands/link-session.ts';
import type { FinishResult } from '../core/commands/command-store.ts';
import type { ClientType, LinkEnd } from '../core/connections/connection.ts';
import { requireDevice } from '../core/devices/device.ts';
import { CallboardError, fail, isStoreUnavailable, notFound } from '../core/errors.ts';
import type { TerminalError } from '../core/history/message.ts';
import type { ClientKey } from '../core/ids.ts';
import { toJson } from '../core/json.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS } from '../core/limits.ts';
import { orElse, thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { Holdings } from '../core/shares/shares.ts';
import { CLIENT_REFUSALS, MAX_ERROR_MESSAGE, type Code } from '../protocol/codes.ts';
import type { FrameFault } from '../protocol/frame-fault.ts';
import type { Recorded, UpFrame } from '../protocol/frames.ts';
import { Callers, type CallerFrame } from './callers.ts';
import { aboutFrame, clip, refusalOf, type OffendingFrame } from './refusals.ts';
import type { FrameWriter } from './socket.ts';
import { BadPayload, payloadOf, payloadOrFault, readAdvertised, readDefinition, readReport } from './payloads.ts';
import { type Handshake, admit, homeOf, pauseMembers, releaseLink, requireNotRevoked } from './hello.ts';
import type { HelloFrame, RouterServices } from './services.ts';

type ReportFrame = Extract<UpFrame, { type: 'ack' | 'progress' | 'result' | 'error' | 'cancelled' }>;
type SiteFrame = Extract<UpFrame, { type: 'site' }>;
type PauseFrame = Extract<UpFrame, { type: 'pause' }>;
/** The frames of a welcomed link, except reports of clients and requests of callers. */
type ControlFrame = Exclude<UpFrame, HelloFrame | ReportFrame | CallerFrame | { type: 'leave' }>;

/** The peer of a link: a client of this type, or a caller. */
export type LinkPeer = ClientType | 'caller';

/** What a router needs to serve one link. `address`: the address of the peer. */
type RoutedLink = { readonly services: RouterServices; readonly writer: FrameWriter; readonly address: string };

/** The error codes with which a client may refuse a command. */
const REFUSALS: ReadonlySet<string> = new Set(CLIENT_REFUSALS);
/** The error codes with which a client may end a command. Any other code becomes `handler_failed`. */
const OWN_CODES: ReadonlySet<string> = new Set([
  ...CLIENT_REFUSALS,
  'handler_failed',
  'result_unavailable',
  'client_timeout',
] satisfies readonly Code[]);

const RECORDED: Readonly<Record<FinishResult['kind'], Recorded>> = {
  finished: 'recorded',
  duplicate: 'duplicate',
  late: 'late',
  fenced: 'fenced',
  unknown: 'unknown',
};

/** The end of a command in the form that core records. */
type ReportedEnd = Parameters<LinkSession['end']>[1];

/** Handles the frames of a link between `welcome` and its end. Its methods neither throw nor reject. */
export class FrameRouter {
  readonly #services: RouterServices;
  readonly #writer: FrameWriter;
  readonly #address: string;
  /** The handler of requests of callers; created for the first request, because most client links never send one. */
  #callers: Callers | null = null;
  readonly #session: LinkSession | null;
  readonly #holdings: Holdings;
  #principal: Principal;
  /** The id of the client; null for a caller. */
  readonly #clientId: string | null;
  readonly #openedAt: number;
  #leaving = false;
  /** The address of the user's home that was sent to the peer; undefined if none was sent. */
  #home: string | undefined;
  /** The pause covering all the client's calls that was last sent to the peer, as text. */
  #paused: string;

  constructor(
    { services, writer, address }: RoutedLink,
    { principal, clientId, session, holdings, welcome }: Handshake,
  ) {
    this.#services = services;
    this.#writer = writer;
    this.#address = address;
    this.#session = session;
    this.#principal = principal;
    this.#clientId = clientId;
    this.#holdings = holdings;
    this.#home = welcome.home;
    const { paused_by, paused_reason, paused_until } = welcome;
    this.#paused = JSON.stringify({ paused_by, paused_reason, paused_until });
    // For a client, core measures how long the link was open.
    this.#openedAt = session ? 0 : services.clock.monotonic();
    if (!session)
      services.log.debug({ requester: subjectOf(principal), nodeId: services.core.nodeId }, 'caller link opened');
  }

  /** Whether the token has expired, according to the wall clock. */
  get expired(): boolean {
    const { expiresAt } = this.#principal;
    return expiresAt !== null && this.#services.clock.now() >= expiresAt;
  }

  /** Whether a revocation covers this link. */
  isCovered(isCovered: (principal: Principal, clientId: string | null) => boolean): boolean {
    return isCovered(this.#principal, this.#clientId);
  }

  /** The user or other holder whose shares this link counts in. */
  get holder(): string {
    return this.#holdings.userId;
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
      case 'pong':
      case 'closing':
      case 'auth':
      case 'actions':
      case 'report':
      case 'site':
      case 'pause':
        this.#takeControl(frame);
    }
  }

  #takeControl(frame: ControlFrame): void {
    const about = aboutFrame(frame);
    if (this.#writer.countUnsolicited(about)) this.#run(about, () => this.#control(frame));
  }

  #control(frame: ControlFrame): MaybePromise<unknown> {
    switch (frame.type) {
      case 'pong':
        return undefined;
      case 'closing':
        return this.#leave();
      case 'auth':
        return this.#renew(frame.token);
      case 'actions':
        return this.#advertise(frame.payload);
      case 'report':
        return this.#reportRows(frame.payload);
      case 'site':
        return this.#host(frame);
      case 'pause':
        return this.#pause(frame);
    }
  }

  /**
   * Handles a frame that arrives while the link is closing. Only ends of commands are recorded: the client may have
   * sent them before it learned of the close.
   */
  takeLate(frame: UpFrame): void {
    const isEnd = frame.type === 'result' || frame.type === 'error' || frame.type === 'cancelled';
    if (isEnd) this.#report(frame);
  }

  /**
   * Handles an invalid report about a command in flight: an end still ends its command, and progress is dropped.
   * Returns false for any other frame, which the caller must refuse.
   */
  takeFaulty({ frame, commandId, code, detail }: FrameFault): boolean {
    const session = this.#session;
    const { commands } = this.#writer;
    if (!session || commandId === null || commands?.get(commandId) === undefined) return false;
    const about = { frame, commandId };
    if (frame === 'progress') {
      if (this.#writer.countProgress(about)) this.#progressDropped();
      return true;
    }
    if (frame !== 'result' && frame !== 'error' && frame !== 'cancelled') return false;
    commands.delete(commandId);
    const end = frame === 'error' ? failure(errorOf(code ?? '', detail)) : lostResult(detail);
    this.#run(about, () => this.#recordEnd(commandId, end, session));
    return true;
  }

  /** Counts progress that cannot be passed on. It is not answered, because progress may be lost in any case. */
  #progressDropped(): void {
    this.#services.metrics.count('frames_refused', 'invalid_argument');
  }

  /** Reports a sign of life to core. Closes the link with `node_lost` if the client is no longer bound to this link. */
  touch(): void {
    const session = this.#session;
    if (!session) return;
    this.#run({}, async () => {
      try {
        if (!(await session.alive())) this.#writer.end('node_lost');
      } catch (error) {
        // The link stays open while the store is unavailable.
        if (!(error instanceof CallboardError && error.code === 'store_unavailable')) throw error;
      }
    });
  }

  /** Tells core that the socket has drained, or that the peer has been silent for STALE_MS. */
  tell(what: 'drained' | 'silent'): void {
    const session = this.#session;
    if (session) this.#run({}, () => session[what]());
  }

  /**
   * Sends the address of the relay nearest to the user's data, if `concerns` is true for the user and the address has
   * changed.
   */
  tellHome(concerns: (userId: string) => boolean): void {
    const principal = this.#principal;
    if (this.#leaving || principal.kind !== 'user' || !concerns(principal.userId)) return;
    const url = homeOf(this.#services.core, principal);
    if (url === this.#home) return;
    this.#home = url;
    this.#writer.send({ type: 'home', url });
  }

  /**
   * Tells the client which pause covers all its calls, if `concerns` is true for the client and the pause has changed.
   */
  tellPause(concerns: (client: ClientKey) => boolean): void {
    const principal = this.#principal;
    if (this.#leaving || this.#clientId === null || principal.kind !== 'user') return;
    const client = { userId: principal.userId, clientId: this.#clientId };
    if (!concerns(client)) return;
    const members = pauseMembers(this.#services.core.pausedClients.of(client));
    const text = JSON.stringify(members);
    if (text === this.#paused) return;
    this.#paused = text;
    this.#writer.send({ type: 'paused', ...members });
  }

  /** Whether a request of a caller has no answer yet. */
  get hasUnanswered(): boolean {
    return this.#callers?.hasUnanswered ?? false;
  }

  /**
   * Releases the shares and ends the waits and the session. May be called only once. Resolves when core has recorded
   * the end, or has failed to.
   */
  async end(end: LinkEnd): Promise<void> {
    releaseLink(this.#holdings);
    this.#callers?.leaveAll();
    if (!this.#session) return this.#callerLeft(end);
    try {
      await this.#session.closed(end.cause, end.closeCode);
    } catch (error) {
      this.#services.log.error({ err: error }, 'the end of a link could not be recorded');
    }
  }

  #callerLeft({ cause, closeCode }: LinkEnd): void {
    const { clock, core, log, metrics } = this.#services;
    metrics.count('links_closed', cause);
    const durationMs = clock.monotonic() - this.#openedAt;
    const requester = subjectOf(this.#principal);
    log.debug({ requester, nodeId: core.nodeId, cause, closeCode, durationMs }, 'caller link closed');
  }

  #ensureCallers(): Callers {
    return (this.#callers ??= new Callers(this.#services.core, this.#writer));
  }

  #request(frame: CallerFrame): void {
    const callers = this.#ensureCallers();
    if (callers.allows(frame)) callers.take(frame, this.#principal, (error) => this.#failed(error, frame));
  }

  #report(frame: ReportFrame): void {
    const session = this.#session;
    if (!session) this.#run(frame, () => this.#clientSession('runs no commands'));
    else {
      const isInFlight = this.#writer.commands?.get(frame.command_id) !== undefined;
      if (this.#isExpected(frame)) this.#run(frame, () => this.#record(frame, session, isInFlight));
    }
  }

  /** Whether the client may send this report. If not, the report was refused, and the refusal was sent. */
  #isExpected(frame: ReportFrame): boolean {
    const writer = this.#writer;
    const { commands } = writer;
    const state = commands?.get(frame.command_id);
    if (!commands || state === undefined) return writer.countUnsolicited(aboutFrame(frame));
    if (frame.type === 'progress') return writer.countProgress(aboutFrame(frame));
    if (frame.type !== 'ack') commands.delete(frame.command_id);
    else if (state === 'acknowledged') return writer.countUnsolicited(aboutFrame(frame));
    else commands.set(frame.command_id, 'acknowledged');
    return true;
  }

  /** Records a report. Returns no promise if the session answers synchronously. */
  #record(frame: ReportFrame, session: LinkSession, isInFlight: boolean): MaybePromise<unknown> {
    const { type, command_id: commandId } = frame;
    if (type === 'ack') return session.ack(commandId);
    if (type === 'error') return this.#recordEnd(commandId, failure(errorOf(frame.code, frame.message)), session);
    const payload = isInFlight ? payloadOrFault(frame) : payloadOf(frame);
    if (payload instanceof BadPayload) {
      if (type === 'progress') return this.#progressDropped();
      return this.#recordEnd(commandId, lostResult(payload.message), session);
    }
    if (type === 'progress') return session.progress(commandId, payload, frame.number);
    return this.#recordEnd(commandId, { kind: type, payload, error: null, refused: false }, session);
  }

  #recordEnd(commandId: string, end: ReportedEnd, session: LinkSession): MaybePromise<void> {
    const record = (): MaybePromise<FinishResult> => session.end(commandId, end);
    const recordWithout = (reason: unknown): MaybePromise<FinishResult> => {
      // The store will never accept this result, so the command ends without it.
      if (end.payload === null || isStoreUnavailable(reason)) throw reason;
      this.#services.log.warn({ err: reason, commandId }, 'a result could not be kept');
      return session.end(commandId, lostResult('the store refuses it'));
    };
    // If the end could not be recorded, the client may send it again, so the command is still expected.
    const ended = orElse(
      () => orElse(record, recordWithout),
      (reason) => {
        this.#writer.commands?.set(commandId, 'acknowledged');
        throw reason;
      },
    );
    return thenDo(ended, (result) => {
      this.#writer.send({ type: 'result_ack', command_id: commandId, recorded: RECORDED[result.kind] });
    });
  }

  async #renew(token: string): Promise<void> {
    const kind = this.#session ? 'client' : 'caller';
    const renewed = admit(await this.#services.authenticator.authenticate(token, this.#address), kind);
    if (subjectOf(renewed) !== subjectOf(this.#principal)) fail('forbidden', 'The token belongs to another user.');
    requireNotRevoked(this.#services, renewed, this.#clientId);
    requireDevice(renewed, this.#clientId, null);
    if (this.#session?.host) requireUser(renewed, 'host');
    this.#principal = renewed;
    this.#writer.send({ type: 'renewed', token_expires_at: renewed.expiresAt ?? undefined });
  }

  /** Handles `closing`. Sends `closed` after all commands, so that the client has read every command before it. */
  async #leave(): Promise<void> {
    const session = this.#clientSession('runs no commands');
    this.#leaving = true;
    const commands = await session.leave();
    this.#writer.send({ type: 'closed' }, toJson({ commands }));
  }

  async #advertise(payload: string | null): Promise<void> {
    const session = this.#activeSession('advertises nothing');
    const { actions } = readAdvertised(this.#services, payload, this.#principal);
    const connection = await session.advertise(actions);
    if (connection === null) this.#writer.end('node_lost');
  }

  async #reportRows(payload: string | null): Promise<void> {
    const session = this.#activeSession('reports nothing');
    const outcome = await session.report(readReport(payload));
    if (outcome === 'full')
      fail('capacity_exceeded', `A client has at most ${CLIENT_CONTEXTS} contexts and ${CLIENT_WINDOWS} windows.`);
    if (outcome === 'fenced') this.#writer.end('node_lost');
  }

  async #host(frame: SiteFrame): Promise<void> {
    const { sites } = this.#services.core;
    const principal = this.#principal;
    const { host, clientId } = this.#activeSession('hosts nothing');
    requireUser(principal, 'host');
    if (!host) fail('forbidden', 'The token in the hello of this link lacks the scope "host".');
    if (frame.op === 'register') {
      const definition = readDefinition(payloadOf(frame));
      await sites.register(principal, { ...definition, siteId: frame.site_id, clientId });
    } else if (!(await sites.remove(principal, frame.site_id))) notFound();
    this.#writer.send({ type: 'site_ack', ref: frame.ref });
  }

  async #pause({ ref, op, reason = '', queued, running }: PauseFrame): Promise<void> {
    const { pauses } = this.#services.core;
    const session = this.#activeSession('pauses nothing');
    // A late frame of an older link must not undo what the client has said over a newer link.
    if (!(await session.alive())) return this.#writer.end('node_lost');
    const { clientId } = session;
    const user = requireUser(this.#principal, 'connect');
    if (op === 'pause') await pauses.pauseClient(user, clientId, { reason, queued, running });
    else await pauses.resumeClient(user, clientId);
    this.#writer.send({ type: 'pause_ack', ref });
  }

  #clientSession(otherwise: string): LinkSession {
    return this.#session ?? fail('forbidden', `This link has no client id: it ${otherwise}.`);
  }

  /**
   * Returns the session of the client. Throws `not_connected` after `closing`, because the client then counts as
   * disconnected.
   */
  #activeSession(otherwise: string): LinkSession {
    if (this.#leaving) fail('not_connected', 'This client has announced that it is closing.');
    return this.#clientSession(otherwise);
  }

  /** Runs the work for a frame. Answers an error with a refusal of the frame. */
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
    if (error instanceof BadPayload)
      this.#writer.refuseFaulty({ fault: error.frameFault, detail: error.message, ...about });
    else this.#writer.refuse(refusalOf(error, this.#services), about);
  }
}

/**
 * Builds an error from a report. Keeps only the first line of the message, because in clients of some languages a stack
 * trace follows it.
 */
function errorOf(code: string, message = ''): TerminalError {
  const known = OWN_CODES.has(code);
  const [line = ''] = message.split(/[\r\n]/, 1);
  return { code: known ? code : 'handler_failed', message: clip(line, MAX_ERROR_MESSAGE) };
}

function failure(error: TerminalError): ReportedEnd {
  return { kind: 'error', payload: null, error, refused: REFUSALS.has(error.code) };
}

/** Returns the end of a command whose client reported a result that cannot be stored. The command did run. */
function lostResult(why: string): ReportedEnd {
  return failure({ code: 'result_unavailable', message: clip(`The result cannot be kept: ${why}`, MAX_ERROR_MESSAGE) });
}
