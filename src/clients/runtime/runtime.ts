/** Creates a runtime, which connects as a client: joins its link, actions, commands, reports and hosted sites. */
import { HEADER_CHARS, longerThan, utf8Length } from '../../protocol/bounds.ts';
import { CLIENT_TYPES } from '../../protocol/fields.ts';
import { parseForClient } from '../../protocol/frame-codec.ts';
import type { UpHeader } from '../../protocol/frames.ts';
import type { ActionSpec } from '../link/actions.ts';
import {
  ANY,
  BOOLEAN,
  FUNCTION,
  ID,
  LIST,
  MS,
  NAME,
  OBJECT,
  QUEUED,
  REASON,
  RUNNING,
  STRING,
  checkMembers,
  checkValue,
  wrong,
  type MembersOf,
} from '../link/options.ts';
import { warn, see, type LinkHelp } from '../link/advice.ts';
import { guarded } from '../link/callbacks.ts';
import { randomId } from '../link/ids.ts';
import { LinkClosedError, type LinkStatus, type Welcome } from '../link/link-status.ts';
import { takeToken } from '../link/reconnect.ts';
import { deferred, sleep, systemClock, type Clock } from '../link/platform.ts';
import { LINK_MEMBERS, RelayLink } from '../link/link.ts';
import { upFrame, type LinkFrame } from '../link/session.ts';
import { Commands, type CommandFrame } from './commands.ts';
import { Deliverer, refusalError, retryMs, type Refused } from './deliverer.ts';
import { SiteRefusedError } from './action-errors.ts';
import type { EndReport } from './end-reports.ts';
import { ClientPause } from './pause.ts';
import { ActionRegistry } from './registry.ts';
import {
  Reporter,
  createThrottle,
  metadataJson,
  type ReportedContext,
  type ReportedWindow,
  type RowsUpdate,
} from './reports.ts';
import type { Handler, PauseOptions, Runtime, RuntimeOptions, SiteDefinition, SiteRegistration } from './types.ts';

// Sizes are bytes of UTF-8, times are milliseconds. The limit of metadata is the relay's (PROTOCOL.md, section 10).

/** The most cooperative sites of one client. This is the relay's limit for one user. */
const MAX_SITES = 100;
/** Progress is dropped if more than this number of bytes is unsent in the socket. */
const PROGRESS_BACKLOG_BYTES = 1024 * 1024;
/**
 * The most progress frames per second. More are dropped: a handler in a tight loop must not cost the client its link.
 */
const PROGRESS_RATE = 50;
/** If `connect` was not called within this time after the creation, in milliseconds, a warning says so. */
const FORGOTTEN_MS = 5_000;
/** The most warnings per second about errors that no callback receives. */
const WARN_RATE = 1;
/** How long `close` waits by default for the relay's answer and for running commands, in milliseconds. */
const CLOSE_MS = 10_000;

/**
 * Creates a client of the relay. It advertises actions, runs each command at most once, and stores each end until the
 * relay acknowledges it. Throws TypeError for invalid options. Its background work never throws and leaves no promise
 * rejection unhandled. If the relay refuses the client permanently, a Node process gets the exit code 1, unless the
 * program has set one or waits for `ready()`, which then rejects.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new LinkRuntime(options);
}

/** Returns a new random id for a context. No other context has had this id. */
export function newContextId(): string {
  return randomId('ctx-');
}

class LinkRuntime implements Runtime {
  readonly clientId: string;
  readonly instanceId: string;
  readonly #options: RuntimeOptions;
  readonly #clock: Clock;
  readonly #metadata: string;
  readonly #link: RelayLink;
  readonly #registry: ActionRegistry;
  readonly #commands: Commands;
  readonly #ends: Deliverer;
  readonly #sites: HostedSites;
  readonly #reporter: Reporter;
  readonly #pause: ClientPause;
  readonly #listeners = new Set<(status: LinkStatus) => void>();
  readonly #unready = new Set<Waiting<Welcome>>();
  readonly #mayProgress: () => boolean;
  readonly #mayWarn: () => boolean;
  readonly #cancelReminder: () => void;
  #advertising = false;
  #closing: Promise<void> | null = null;
  /** The progress of the shutdown: not begun, `closing` sent (or about to be), or `closing` answered. */
  #leaving: 'no' | 'asking' | 'answered' = 'no';
  /** Resolves when the shutdown is complete. */
  readonly #left = deferred<void>();

  constructor(options: RuntimeOptions) {
    checkMembers('', options, RUNTIME_MEMBERS);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#mayProgress = createThrottle(this.#clock, PROGRESS_RATE);
    this.#mayWarn = createThrottle(this.#clock, WARN_RATE);
    this.clientId = options.clientId;
    this.instanceId = options.instanceId ?? randomId('i-');
    if (!CLIENT_TYPES.includes(options.clientType))
      throw wrong('clientType', options.clientType, `one of ${CLIENT_TYPES.join(', ')}`);
    this.#metadata = metadataJson(options.metadata, 'metadata');
    this.#ends = new Deliverer({
      clock: this.#clock,
      bounds: () => this.#link.bounds,
      send: (text) => this.#link.sendText(text),
      dropped: (commandId, reason) => this.#dropped(commandId, reason),
      onTaken: () => this.#checkLeft(),
    });
    this.#sites = new HostedSites({
      clock: this.#clock,
      send: ({ ref, siteId, payload }) =>
        this.#send({ type: 'site', ref, op: payload === null ? 'remove' : 'register', site_id: siteId }, payload),
    });
    this.#pause = new ClientPause({
      clock: this.#clock,
      onPaused: (paused) => guarded(() => options.onPaused?.(paused), options.onError),
      send: ({ ref, request }) =>
        this.#send({ type: 'pause', ref, op: request ? 'pause' : 'resume', ...request }, null),
    });
    this.#reporter = new Reporter({ clock: this.#clock, send: (json) => this.#send({ type: 'report' }, json) });
    this.#registry = new ActionRegistry({ changed: () => this.#advertise(), maxBytes: () => this.#actionBytes() });
    this.#commands = new Commands({
      ...options,
      registry: this.#registry,
      isPaused: () => this.#pause.holds,
      hasContext: (contextId) => this.#reporter.hasContext(contextId),
      maxDepth: () => this.#link.bounds.maxDepth,
      ack: (commandId) => void this.#link.send({ type: 'ack', command_id: commandId }),
      flush: () => this.#link.flush(),
      progress: (frame, isLast) => this.#progress(frame, isLast),
      report: (error) => this.#report(error),
      end: (commandId, end) => this.#end(commandId, end),
    });
    this.#link = new RelayLink({
      ...options,
      who: `client ${this.clientId}`,
      parse: parseForClient,
      help: HELP,
      isHeard: (status) => this.#isHeard(status),
      hello: (token, attempt) => this.#hello(token, attempt),
      onFrame: (frame, ageMs) => this.#frame(frame, ageMs),
      onStatus: (status) => this.#statusChanged(status),
    });
    options.actions?.forEach((action, i) => {
      checkValue(`actions[${i}]`, action, OBJECT);
      const { name, run, ...spec } = action;
      this.handle(name, spec, run);
    });
    this.#cancelReminder = this.#clock.after(FORGOTTEN_MS, () => this.#remind());
  }

  get url(): string {
    return this.#link.url;
  }

  get status(): LinkStatus {
    return this.#link.status;
  }

  get paused(): Runtime['paused'] {
    return this.#pause.paused;
  }

  get running(): number {
    return this.#commands.size;
  }

  get unacknowledged(): number {
    return this.#ends.size;
  }

  connect(): void {
    if (this.status.state === 'closed') this.#warn(`connect() after the end does nothing. ${this.status.message}`);
    this.#cancelReminder();
    this.#link.connect();
  }

  ready(): Promise<Welcome> {
    const { promise, resolve, reject } = deferred<Welcome>();
    this.#unready.add({ resolve, reject });
    this.#answerReady(this.status);
    return promise;
  }

  onStatus(listener: (status: LinkStatus) => void): () => void {
    checkValue('listener', listener, FUNCTION);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  handle(name: string, spec: ActionSpec, run: Handler<never>): () => void {
    return this.#registry.add(name, spec, run);
  }

  site(definition: SiteDefinition): SiteRegistration {
    checkSite(definition);
    const { siteId } = definition;
    const json = JSON.stringify(siteMembers(definition));
    const registered = longerThan(json, this.#link.bounds.maxFrameBytes - HEADER_CHARS)
      ? Promise.reject(
          new SiteRefusedError('payload_too_large', `The definition of ${siteId} does not fit into a frame.`),
        )
      : this.#sites.request(siteId, json);
    registered.catch(() => {});
    return { siteId, registered, remove: () => this.removeSite(siteId) };
  }

  removeSite(siteId: string): Promise<void> {
    checkValue('siteId', siteId, ID);
    return this.#sites.request(siteId, null);
  }

  reportContexts(contexts: RowsUpdate<ReportedContext>): void {
    this.#reporter.contexts(contexts);
  }

  reportWindows(windows: RowsUpdate<ReportedWindow>): void {
    this.#reporter.windows(windows);
  }

  pause(reason: string, options: PauseOptions = {}): Promise<void> {
    checkMembers('options.', options, [{}, { queued: QUEUED, running: RUNNING }]);
    checkValue('reason', reason, REASON);
    return this.#pause.want({ ...options, reason });
  }

  resume(): Promise<void> {
    return this.#pause.want(null);
  }

  token(): Promise<string> {
    return takeToken(this.#options.token);
  }

  close(options: { readonly withinMs?: number } = {}): Promise<void> {
    checkMembers('options.', options, [{}, { withinMs: MS }]);
    this.#cancelReminder();
    this.#closing ??= this.#leave(options.withinMs ?? CLOSE_MS);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Shuts down gracefully. After the relay's answer to `closing`, the relay dispatches nothing more. Commands that were
   * dispatched before still run. The shutdown is complete when all of them have ended and the relay has acknowledged
   * their ends. A relay that refuses `closing` is an older one; the commands that it still sends are refused.
   */
  async #leave(withinMs: number): Promise<void> {
    const enough = new AbortController();
    const waited = sleep(this.#clock, withinMs, enough.signal).catch(() => {});
    this.#link.stay();
    if (this.status.state !== 'closed') {
      this.#leaving = 'asking';
      this.#link.send({ type: 'closing' });
      this.#checkLeft();
      await Promise.race([this.#left.promise, waited]);
    }
    enough.abort();
    this.#commands.shut();
    await this.#commands.giveUp();
    this.#link.flush();
    this.#link.close();
  }

  /** Called when the relay answers `closed`, or refuses `closing`. */
  #closingAnswered(): void {
    if (this.#leaving !== 'asking') return;
    this.#leaving = 'answered';
    this.#commands.shut();
    this.#checkLeft();
  }

  /**
   * Completes the shutdown if no command runs, no end waits, and no further command can arrive. Called whenever one of
   * these may have changed.
   */
  #checkLeft(): void {
    // If no hello was sent, the relay cannot count this client as connected, so it cannot send commands.
    const quiet = this.#leaving === 'answered' || (this.#leaving === 'asking' && !this.#link.greeted);
    if (quiet && this.#commands.size + this.#ends.size === 0) this.#left.resolve();
  }

  /** Sends a frame unless this client is shutting down. Returns false if the frame was not sent. */
  #send(header: UpHeader, payload: string | null): boolean {
    return this.#leaving === 'no' && this.#link.send(header, payload);
  }

  #hello(token: string, attempt: number): string {
    const { clientType, places } = this.#options;
    const ids = { client_id: this.clientId, instance_id: this.instanceId, client_type: clientType };
    const header = { type: 'hello', token, ...ids, places } as const;
    const payload = `{"metadata":${this.#metadata},"actions":${this.#registry.json()}`;
    const received = JSON.stringify([...this.#ends.received]);
    const hello = upFrame({ ...header, link_attempt: attempt }, `${payload},"received":${received}}`);
    // The list of received commands may make the hello too large, because the bound of the actions does not include it.
    // If so, it is left out, and the relay treats this link as one of a client that does not report received commands.
    return longerThan(hello, this.#link.bounds.maxFrameBytes) ? upFrame(header, `${payload}}`) : hello;
  }

  /** Returns the most bytes of all actions together, so that they fit into a hello with the longest header. */
  #actionBytes(): number {
    return this.#link.bounds.maxFrameBytes - HEADER_CHARS - utf8Length(this.#metadata);
  }

  /**
   * Sends one advertisement for all changes of a turn of the event loop. Without a link, the next hello has the
   * actions.
   */
  #advertise(): void {
    if (this.#advertising) return;
    this.#advertising = true;
    queueMicrotask(() => {
      this.#advertising = false;
      this.#send({ type: 'actions' }, `{"actions":${this.#registry.json()}}`);
    });
  }

  #isHeard({ state }: LinkStatus): boolean {
    if (this.#leaving !== 'no' || (state === 'closed' && this.#unready.size > 0)) return true;
    return this.#options.onStatus !== undefined || this.#listeners.size > 0;
  }

  #statusChanged(status: LinkStatus): void {
    if (status.state === 'connected') {
      if (this.#leaving === 'asking') this.#link.send({ type: 'closing' });
      this.#ends.resend();
      this.#sites.welcomed();
      this.#pause.welcomed(status.welcome);
      this.#reporter.welcomed(this.#link.bounds.maxFrameBytes);
    }
    // If the relay has answered `closing`, this client does not reconnect: by now another instance may be connected,
    // which it would replace.
    if (status.state === 'disconnected' && this.#leaving === 'answered') this.#left.resolve();
    else if (status.state === 'disconnected') this.#checkLeft();
    if (status.state === 'closed') {
      this.#commands.abort();
      this.#ends.close();
      this.#sites.close(new LinkClosedError(status));
      this.#pause.close(new LinkClosedError(status));
      this.#left.resolve();
    }
    const { onStatus = () => {}, onError } = this.#options;
    for (const listener of [onStatus, ...this.#listeners]) guarded(() => listener(status), onError);
    // If `ready()` rejects, the program decides how to end. Otherwise the exit code reports the failure.
    if (status.state === 'closed' && this.#leaving === 'no' && this.#unready.size === 0) failProcess();
    this.#answerReady(status);
  }

  #answerReady(status: LinkStatus): void {
    if (status.state !== 'connected' && status.state !== 'closed') return;
    for (const { resolve, reject } of this.#unready) {
      if (status.state === 'connected') resolve(status.welcome);
      else reject(new LinkClosedError(status));
    }
    this.#unready.clear();
  }

  #frame(frame: LinkFrame, ageMs: number | null): void {
    if (frame.type === 'command') this.#command(frame, ageMs);
    else if (frame.type === 'cancel') this.#commands.cancel(frame.command_id, frame.reason);
    else if (frame.type === 'result_ack') this.#ends.taken(frame.command_id);
    else if (frame.type === 'site_ack') this.#sites.taken(frame.ref);
    else if (frame.type === 'paused') this.#pause.told(frame);
    else if (frame.type === 'pause_ack') this.#pause.taken(frame.ref);
    else if (frame.type === 'closed') this.#closingAnswered();
    else if (frame.type === 'refused') this.#refused(frame);
  }

  #command(frame: CommandFrame, ageMs: number | null): void {
    const known = this.#ends.begin(frame.command_id);
    if (known === 'new') this.#commands.start(frame, ageMs);
    else if (known === 'running' && this.#commands.started(frame.command_id)) {
      this.#link.send({ type: 'ack', command_id: frame.command_id });
    }
  }

  #progress(frame: string, isLast: boolean): boolean {
    return (
      this.#link.backlog() <= PROGRESS_BACKLOG_BYTES &&
      !longerThan(frame, this.#link.bounds.maxFrameBytes) &&
      this.status.state === 'connected' &&
      (isLast || this.#mayProgress()) &&
      this.#link.sendText(frame)
    );
  }

  #end(commandId: string, end: EndReport): void {
    this.#ends.end(commandId, end);
    this.#checkLeft();
  }

  #refused(frame: Refused): void {
    if (frame.frame === 'closing') return this.#closingAnswered();
    this.#report(refusalError(frame));
    this.#ends.refused(frame);
    this.#sites.refused(frame);
    this.#pause.refused(frame);
    this.#reporter.refused(frame);
  }

  /** Passes an error to the program's `onError`. If there is none, prints the error with its stack. */
  #report(error: unknown): void {
    const { onError } = this.#options;
    if (onError) guarded(() => onError(error), undefined);
    else if (this.#mayWarn())
      warn(`client ${this.clientId}`, 'nothing receives this error (onError is not set):', error);
  }

  #warn(message: string): void {
    warn(`client ${this.clientId}`, message);
  }

  #remind(): void {
    this.#warn(`connect() was not called, so nothing happens${see('forgotten-connect')}`);
  }

  #dropped(commandId: string, reason: string): void {
    guarded(() => this.#options.onDrop?.({ commandId, reason }), this.#options.onError);
  }
}

/**
 * Sets the exit code of a Node process to 1, unless the program has set one. Called when the link is closed permanently
 * and no `ready()` reports it.
 */
function failProcess(): void {
  if (typeof process === 'object' && process.versions?.node) process.exitCode ??= 1;
}

/** Advice for a person about the end of a client's link, by the reason of the end. */
const HELP: LinkHelp = {
  forbidden: 'A client needs a token of a user with the scope "connect".',
  frame_too_large: 'What this program sends, or all that it advertises, is larger than the relay accepts.',
  replaced: 'Another program connected with this clientId. Give each its own.',
};

const [REQUIRED, OPTIONAL] = LINK_MEMBERS;
const RUNTIME_MEMBERS: MembersOf<RuntimeOptions> = [
  { ...REQUIRED, clientId: ID, clientType: ANY },
  {
    ...OPTIONAL,
    ...{ instanceId: ID, places: BOOLEAN, metadata: ANY, actions: LIST, tracing: OBJECT },
    ...{ authorize: FUNCTION, approve: FUNCTION, onDrop: FUNCTION, onPaused: FUNCTION },
  },
];

const SITE_MEMBERS: MembersOf<SiteDefinition> = [
  { siteId: ID },
  { title: ANY, eventNames: LIST, actions: LIST, capabilityProfile: OBJECT },
];

function checkSite(definition: SiteDefinition): void {
  checkMembers('', definition, SITE_MEMBERS);
  const { title, eventNames, actions, capabilityProfile = {} } = definition;
  if (title != null) checkValue('title', title, STRING);
  for (const [list, names] of Object.entries({ eventNames, actions }))
    names?.forEach((name, i) => checkValue(`${list}[${i}]`, name, NAME));
  checkMembers('capabilityProfile.', capabilityProfile, [{}, { actionInvocation: BOOLEAN, sharing: BOOLEAN }]);
}

/** Returns the definition of a site with the names of the protocol and with the defaults. */
export function siteMembers({ title, eventNames, actions, capabilityProfile: profile }: SiteDefinition): object {
  return {
    title: title ?? null,
    event_names: eventNames ?? [],
    actions: actions ?? [],
    capability_profile: { action_invocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
  };
}

type HostedSitesOptions = {
  readonly clock: Clock;
  /** Sends a `site` frame. Returns false if there is no link. `payload`: the definition; null to remove the site. */
  send(frame: { readonly ref: string; readonly siteId: string; readonly payload: string | null }): boolean;
};

type Waiting<T = void> = { resolve(value: T): void; reject(error: Error): void };
type Entry = {
  readonly siteId: string;
  /** The definition that the relay accepted last; null if there is none. */
  accepted: string | null;
  /** The definition that the relay should have; null if the site should be removed. */
  wanted: string | null;
  /** The ref of the latest frame. Its answer settles all promises in `waiting`. */
  ref: string;
  waiting: Waiting[];
};

/**
 * The sites that this client hosts. They are sent again on each new link. If the relay refuses a definition, the one
 * that it accepted before stays valid.
 */
class HostedSites {
  readonly #options: HostedSitesOptions;
  readonly #entries = new Map<string, Entry>();
  /** The frames that were sent over this link and are not answered, by ref. */
  readonly #sent = new Map<string, { readonly entry: Entry; readonly payload: string | null }>();
  #refs = 0;
  #ended: Error | null = null;

  constructor(options: HostedSitesOptions) {
    this.#options = options;
  }

  /**
   * Registers a site, or removes it if `payload` is null. Resolves when the relay has accepted this request or a later
   * one for the same site. Rejects with SiteRefusedError, or with the error that was passed to `close`.
   */
  request(siteId: string, payload: string | null): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended);
    const known = this.#entries.get(siteId);
    if (!known && this.#entries.size >= MAX_SITES) {
      return Promise.reject(new SiteRefusedError('capacity_exceeded', `A client hosts at most ${MAX_SITES} sites.`));
    }
    const entry = known ?? { siteId, accepted: null, wanted: null, ref: '', waiting: [] };
    this.#entries.set(siteId, entry);
    entry.wanted = payload;
    const { promise, resolve, reject } = deferred<void>();
    entry.waiting.push({ resolve, reject });
    this.#send(entry);
    return promise;
  }

  /** Called for each new link. Sends the definitions of all sites again. */
  welcomed(): void {
    this.#sent.clear();
    for (const entry of this.#entries.values()) this.#send(entry);
  }

  taken(ref: string): void {
    const sent = this.#answered(ref);
    if (!sent) return;
    const { entry, payload } = sent;
    entry.accepted = payload;
    if (entry.ref !== ref) return;
    if (payload === null) this.#entries.delete(entry.siteId);
    for (const waiting of entry.waiting.splice(0)) waiting.resolve();
  }

  /** Handles the refusal of a `site` frame. Ignores refusals of other frames. */
  refused(refusal: Refused): void {
    const { code, message, frame, ref } = refusal;
    const sent = frame === 'site' && ref !== undefined ? this.#answered(ref) : undefined;
    if (!sent || sent.entry.ref !== ref) return;
    const { entry, payload } = sent;
    const ms = retryMs(refusal);
    if (ms !== null) return this.#resendIn(entry, ms);
    entry.wanted = payload === null && code === 'not_found' ? null : entry.accepted;
    if (entry.wanted === null) this.#entries.delete(entry.siteId);
    const error = new SiteRefusedError(code, message);
    for (const waiting of entry.waiting.splice(0)) waiting.reject(error);
  }

  /** Called when the link is closed permanently. Rejects all requests. */
  close(error: Error): void {
    this.#ended = error;
    this.#sent.clear();
    for (const entry of this.#entries.values()) {
      for (const waiting of entry.waiting.splice(0)) waiting.reject(error);
    }
    this.#entries.clear();
  }

  #send(entry: Entry): void {
    entry.ref = `s-${++this.#refs}`;
    const sent = this.#options.send({ ref: entry.ref, siteId: entry.siteId, payload: entry.wanted });
    if (sent) this.#sent.set(entry.ref, { entry, payload: entry.wanted });
  }

  #resendIn(entry: Entry, ms: number): void {
    const { ref } = entry;
    this.#options.clock.after(ms, () => {
      if (entry.ref === ref && this.#entries.get(entry.siteId) === entry) this.#send(entry);
    });
  }

  #answered(ref: string): { readonly entry: Entry; readonly payload: string | null } | undefined {
    const sent = this.#sent.get(ref);
    this.#sent.delete(ref);
    return sent;
  }
}
