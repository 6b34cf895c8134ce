/** Creates the client of the relay that runs commands. It joins the link, the actions, the commands and the reports. */
import { ID } from '../../protocol/fields.ts';
import type { UpHeader } from '../../protocol/frames.ts';
import { RelayLink, guarded, upFrame, type LinkFrame } from '../link/link.ts';
import { randomId, sleep, systemClock, type Clock } from '../link/platform.ts';
import { LinkClosedError, takeToken, type LinkStatus, type Welcome } from '../link/socket.ts';
import { Commands, type CommandFrame } from './commands.ts';
import { Deliverer, refusalError, type Refused } from './deliverer.ts';
import {
  CLOSE_MS,
  MAX_METADATA_BYTES,
  PROGRESS_BACKLOG_BYTES,
  PROGRESS_RATE,
  fits,
  toJson,
  type EndReport,
} from './ends.ts';
import { createRegistry, type ActionRegistry } from './registry.ts';
import { type ReportedContext, type ReportedWindow, Reporter, createThrottle, type RowsUpdate } from './reports.ts';
import { HostedSites } from './sites.ts';
import type { ActionSpec, Handler, Runtime, RuntimeOptions, SiteDefinition, SiteRegistration } from './types.ts';

/**
 * Creates a client of the relay. It advertises actions, runs each command at most once, and keeps each end until the
 * relay acknowledges it. Throws TypeError for invalid options. Background work never throws and leaves no promise
 * rejection unhandled.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new LinkRuntime(options);
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
  readonly #listeners = new Set<(status: LinkStatus) => void>();
  readonly #leaving: Leaving;
  readonly #readiness = new Readiness();
  readonly #mayProgress: () => boolean;
  #advertising = false;
  #closing: Promise<void> | null = null;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#mayProgress = createThrottle(this.#clock, PROGRESS_RATE);
    this.clientId = checkId('clientId', options.clientId);
    this.instanceId = checkId('instanceId', options.instanceId ?? randomId('i-'));
    this.#metadata = metadataJson(options);
    this.#leaving = new Leaving({
      ask: () => void this.#link.send({ type: 'closing' }),
      mayBeBound: () => this.#link.greeted,
      owed: () => this.#commands.size + this.#ends.size,
      shut: () => this.#commands.shut(),
    });
    this.#ends = new Deliverer({
      clock: this.#clock,
      send: (text) => this.#link.sendText(text),
      dropped: (commandId, reason) => this.#dropped(commandId, reason),
      onTaken: () => this.#leaving.check(),
    });
    this.#sites = new HostedSites({
      clock: this.#clock,
      send: ({ ref, siteId, payload }) =>
        this.#send({ type: 'site', ref, op: payload === null ? 'remove' : 'register', site_id: siteId }, payload),
    });
    this.#reporter = new Reporter({ clock: this.#clock, send: (json) => this.#send({ type: 'report' }, json) });
    this.#registry = createRegistry(() => this.#advertise());
    this.#commands = new Commands({
      ...options,
      registry: this.#registry,
      ack: (commandId) => void this.#link.send({ type: 'ack', command_id: commandId }),
      flush: () => this.#link.flush(),
      progress: (commandId, json) => this.#progress(commandId, json),
      end: (commandId, end) => this.#end(commandId, end),
    });
    this.#link = new RelayLink({
      ...options,
      hello: (token) => this.#hello(token),
      onFrame: (frame) => this.#frame(frame),
      onStatus: (status) => this.#statusChanged(status),
    });
    for (const { name, run, ...spec } of options.actions ?? []) this.handle(name, spec, run);
  }

  get url(): string {
    return this.#options.url;
  }

  get status(): LinkStatus {
    return this.#link.status;
  }

  get running(): number {
    return this.#commands.size;
  }

  get unacknowledged(): number {
    return this.#ends.size;
  }

  connect(): void {
    this.#link.connect();
  }

  ready(): Promise<Welcome> {
    return this.#readiness.wait(this.status);
  }

  onStatus(listener: (status: LinkStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  handle(name: string, spec: ActionSpec, run: Handler): () => void {
    return this.#registry.add(name, spec, run);
  }

  site(definition: SiteDefinition): SiteRegistration {
    const siteId = checkId('siteId', definition.siteId);
    const registered = this.#sites.request(siteId, siteJson(definition));
    registered.catch(() => {});
    return { siteId, registered, remove: () => this.removeSite(siteId) };
  }

  removeSite(siteId: string): Promise<void> {
    return this.#sites.request(siteId, null);
  }

  reportContexts(contexts: RowsUpdate<ReportedContext>): void {
    this.#reporter.contexts(contexts);
  }

  reportWindows(windows: RowsUpdate<ReportedWindow>): void {
    this.#reporter.windows(windows);
  }

  token(): Promise<string> {
    return takeToken(this.#options.token);
  }

  close({ withinMs = CLOSE_MS }: { readonly withinMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#leave(withinMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #leave(withinMs: number): Promise<void> {
    const enough = new AbortController();
    const waited = sleep(this.#clock, withinMs, enough.signal).catch(() => {});
    if (this.status.state !== 'closed') await Promise.race([this.#leaving.begin(), waited]);
    enough.abort();
    this.#commands.shut();
    this.#link.close();
  }

  /** Sends a frame unless this client is leaving. Returns false if the frame was not sent. */
  #send(header: UpHeader, payload: string | null): boolean {
    return !this.#leaving.begun && this.#link.send(header, payload);
  }

  #hello(token: string): string {
    const { clientId, instanceId } = this;
    const advertised = { metadata: this.#metadata, actions: this.#registry.json() };
    return helloFrame({ token, clientId, instanceId, clientType: this.#options.clientType, ...advertised });
  }

  /** Advertises once for all changes of one event-loop turn. Without a link, the next hello advertises. */
  #advertise(): void {
    if (this.#advertising) return;
    this.#advertising = true;
    queueMicrotask(() => {
      this.#advertising = false;
      this.#send({ type: 'actions' }, `{"actions":${this.#registry.json()}}`);
    });
  }

  #statusChanged(status: LinkStatus): void {
    if (status.state === 'connected') {
      this.#leaving.welcomed();
      this.#ends.maxFrame = status.welcome.max_frame_bytes;
      this.#ends.resend();
      this.#sites.welcomed();
      this.#reporter.welcomed(status.welcome.max_frame_bytes);
    }
    if (status.state === 'disconnected') this.#leaving.lost();
    if (status.state === 'closed') {
      this.#commands.abort();
      this.#ends.close();
      this.#sites.close(new LinkClosedError(status.reason));
      this.#leaving.closed();
    }
    const { onStatus = () => {}, onError } = this.#options;
    for (const listener of [onStatus, ...this.#listeners]) guarded(() => listener(status), onError);
    this.#readiness.changed(status);
  }

  #frame(frame: LinkFrame): void {
    if (frame.type === 'command') this.#command(frame);
    else if (frame.type === 'cancel') this.#commands.cancel(frame.command_id, frame.reason);
    else if (frame.type === 'result_ack') this.#ends.taken(frame.command_id);
    else if (frame.type === 'site_ack') this.#sites.taken(frame.ref);
    else if (frame.type === 'closed') this.#leaving.answered();
    else if (frame.type === 'refused') this.#refused(frame);
  }

  #command(frame: CommandFrame): void {
    const known = this.#ends.begin(frame.command_id);
    if (known === 'new') this.#commands.start(frame);
    else if (known === 'running' && this.#commands.started(frame.command_id)) {
      this.#link.send({ type: 'ack', command_id: frame.command_id });
    }
  }

  #progress(commandId: string, json: string): boolean {
    const text = upFrame({ type: 'progress', command_id: commandId }, json);
    if (this.#link.backlog() > PROGRESS_BACKLOG_BYTES || !fits(text, this.#ends.maxFrame)) return false;
    return this.status.state === 'connected' && this.#mayProgress() && this.#link.sendText(text);
  }

  #end(commandId: string, end: EndReport): void {
    this.#ends.end(commandId, end);
    this.#leaving.check();
  }

  #refused(frame: Refused): void {
    if (frame.frame === 'closing') return this.#leaving.answered();
    guarded(() => this.#options.onError?.(refusalError(frame)), undefined);
    this.#ends.refused(frame);
    this.#sites.refused(frame);
    this.#reporter.refused(frame);
  }

  #dropped(commandId: string, reason: string): void {
    guarded(() => this.#options.onDrop?.({ commandId, reason }), this.#options.onError);
  }
}

// Checks the options of a runtime, and writes its hello frame.

/** Returns a valid id. Throws TypeError, naming the option, for an invalid one. */
export function checkId(option: string, id: string): string {
  if (!ID.test(id)) throw new TypeError(`${option}: 1 to 128 of A-Z a-z 0-9 . _ : @ ~ - expected`);
  return id;
}

/** Returns the metadata as JSON text. Throws TypeError when it is not JSON or too large. */
function metadataJson({ metadata }: RuntimeOptions): string {
  const json = toJson(metadata ?? null);
  if (typeof json !== 'string' || !fits(json, MAX_METADATA_BYTES)) {
    throw new TypeError(`metadata: JSON of at most ${MAX_METADATA_BYTES} bytes expected`);
  }
  return json;
}

type Hello = {
  readonly token: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: RuntimeOptions['clientType'];
  readonly metadata: string;
  readonly actions: string;
};

/** Returns the first frame of a client's link. `metadata` and `actions` are JSON text. */
function helloFrame({ token, clientId, instanceId, clientType, metadata, actions }: Hello): string {
  const ids = { client_id: clientId, instance_id: instanceId, client_type: clientType };
  return upFrame({ type: 'hello', token, ...ids }, `{"metadata":${metadata},"actions":${actions}}`);
}

/** Returns the payload of the `site` frame that registers a site. */
function siteJson({ title, eventNames, actions, capabilityProfile: profile }: SiteDefinition): string {
  return JSON.stringify({
    title: title ?? null,
    event_names: eventNames ?? [],
    actions: actions ?? [],
    capability_profile: { action_invocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
  });
}

// Holds the promises that `ready()` returns until the link is up, or closed permanently.

type Waiting = { resolve(welcome: Welcome): void; reject(error: LinkClosedError): void };

class Readiness {
  readonly #waiting = new Set<Waiting>();

  /** Resolves when the link is up, at once if it is. Rejects with LinkClosedError when it is closed permanently. */
  wait(status: LinkStatus): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ resolve, reject });
      this.changed(status);
    });
  }

  changed(status: LinkStatus): void {
    if (status.state !== 'connected' && status.state !== 'closed') return;
    for (const { resolve, reject } of this.#waiting) {
      if (status.state === 'connected') resolve(status.welcome);
      else reject(new LinkClosedError(status.reason));
    }
    this.#waiting.clear();
  }
}

// Shuts a runtime down gracefully: announces `closing`, and waits for running commands and their ends.

type LeavingOptions = {
  /** Sends `closing`. Does nothing while there is no link. */
  ask(): void;
  /** Whether the relay may count this client as connected: a hello was sent over a socket that is still open. */
  mayBeBound(): boolean;
  /** Returns the number of running commands plus the number of ends that the relay has not acknowledged. */
  owed(): number;
  /** Refuses all later commands. */
  shut(): void;
};

/**
 * The graceful shutdown of a runtime. It sends `closing`, so that the relay dispatches nothing more. Commands that were
 * dispatched before the relay's answer still run. The shutdown is complete when all commands have ended and the relay
 * has acknowledged their ends. A relay that refuses `closing` is an older one; commands that it still sends are
 * refused.
 */
class Leaving {
  readonly #options: LeavingOptions;
  readonly #done = Promise.withResolvers<void>();
  #state: 'no' | 'asking' | 'answered' = 'no';

  constructor(options: LeavingOptions) {
    this.#options = options;
  }

  get begun(): boolean {
    return this.#state !== 'no';
  }

  /** Begins the shutdown. Resolves when `owed` is 0 and no further command can arrive, or when the link is closed. */
  begin(): Promise<void> {
    this.#state = 'asking';
    this.#options.ask();
    this.check();
    return this.#done.promise;
  }

  /** Called when the link is up, also after a reconnect. */
  welcomed(): void {
    if (this.#state === 'asking') this.#options.ask();
  }

  /** Called when the relay answers `closed`, or refuses `closing`. */
  answered(): void {
    if (this.#state !== 'asking') return;
    this.#state = 'answered';
    this.#options.shut();
    this.check();
  }

  /**
   * Called when the link breaks. If the relay has answered, the shutdown is complete. This client does not reconnect,
   * because it could replace a successor that is connected by now.
   */
  lost(): void {
    if (this.#state === 'answered') this.closed();
    else this.check();
  }

  closed(): void {
    this.#done.resolve();
  }

  /**
   * Completes the shutdown if `owed` is 0 and no further command can arrive. Must be called whenever `owed` may have
   * decreased.
   */
  check(): void {
    const { mayBeBound, owed } = this.#options;
    const quiet = this.#state === 'answered' || (this.#state === 'asking' && !mayBeBound());
    if (quiet && owed() === 0) this.#done.resolve();
  }
}
