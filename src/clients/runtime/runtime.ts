/** Creates the client of the relay that runs commands. It joins the link, the actions, the commands and the reports. */
import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { upFrame } from '../link/frame.ts';
import { guarded } from '../link/guard.ts';
import { RelayLink } from '../link/link.ts';
import { randomId } from '../link/random.ts';
import type { UpHeader } from '../../protocol/frames.ts';
import type { LinkFrame } from '../link/session.ts';
import { LinkClosedError, type LinkStatus, type Welcome } from '../link/status.ts';
import { takeToken } from '../link/token.ts';
import { Commands, type CommandFrame } from './commands.ts';
import { Deliverer, refusalError, type Refused } from './deliverer.ts';
import type { EndReport } from './ends.ts';
import { CLOSE_MS, fits, PROGRESS_BACKLOG_BYTES, PROGRESS_RATE } from './limits.ts';
import { checkId, helloFrame, metadataJson, siteJson } from './options.ts';
import { Leaving } from './leaving.ts';
import { Readiness } from './readiness.ts';
import { createRegistry, type ActionRegistry } from './registry.ts';
import { Reporter, type RowsUpdate } from './report.ts';
import type { ReportedContext, ReportedWindow } from './report-rows.ts';
import { HostedSites } from './sites.ts';
import { createThrottle } from './throttle.ts';
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
