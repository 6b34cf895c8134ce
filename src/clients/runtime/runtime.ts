import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { upFrame } from '../link/frame.ts';
import { guarded } from '../link/guard.ts';
import { Link } from '../link/link.ts';
import { randomId } from '../link/random.ts';
import type { LinkFrame } from '../link/session.ts';
import type { LinkStatus, Welcome } from '../link/status.ts';
import { Commands, type CommandFrame } from './commands.ts';
import { endFrame, failure, type End } from './ends.ts';
import { Ledger } from './ledger.ts';
import {
  CLOSE_MS,
  fits,
  MAX_FRAME_BYTES,
  PROGRESS_BACKLOG_BYTES,
  PROGRESS_RATE,
  RESEND_AT_ONCE,
  RESEND_MS,
} from './limits.ts';
import { checkId, helloFrame, metadataJson } from './options.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createRegistry, type Registry } from './registry.ts';
import { createThrottle } from './throttle.ts';
import type { ActionSpec, Handler, Runtime, RuntimeOptions } from './types.ts';

type Refused = Extract<LinkFrame, { type: 'refused' }>;

/** Refusals of an end that time may mend: the end is kept and sent again. */
const PASSING = new Set(['store_unavailable', 'draining', 'rate_limited', 'internal']);

/**
 * A client of the relay: advertises actions and runs the commands that come for them, each at most once, and keeps each end until the relay
 * has taken it. Throws TypeError for options that cannot work; after that nothing throws and no promise is left unhandled.
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
  readonly #link: Link;
  readonly #registry: Registry;
  readonly #commands: Commands;
  readonly #ledger = new Ledger();
  readonly #outbox: Outbox;
  readonly #listeners = new Set<(status: LinkStatus) => void>();
  readonly #idle = new Set<() => void>();
  readonly #mayProgress: () => boolean;
  #maxFrame = MAX_FRAME_BYTES;
  #advertising = false;
  #resending = false;
  #closing: Promise<void> | null = null;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#mayProgress = createThrottle(this.#clock, PROGRESS_RATE);
    this.clientId = checkId('clientId', options.clientId);
    this.instanceId = checkId('instanceId', options.instanceId ?? randomId('i-'));
    this.#metadata = metadataJson(options);
    this.#outbox = createOutbox((commandId) => this.#dropped(commandId, 'outbox_full'));
    this.#registry = createRegistry(() => this.#advertise());
    this.#commands = new Commands({
      ...options,
      registry: this.#registry,
      ack: (commandId) => void this.#link.send({ type: 'ack', command_id: commandId }),
      progress: (commandId, json) => this.#progress(commandId, json),
      end: (commandId, end) => this.#end(commandId, end),
    });
    this.#link = new Link({
      ...options,
      hello: (token) => this.#hello(token),
      onFrame: (frame) => this.#frame(frame),
      onStatus: (status) => this.#statusChanged(status),
    });
    for (const { name, run, ...spec } of options.actions ?? []) this.handle(name, spec, run);
  }

  get status(): LinkStatus {
    return this.#link.status;
  }

  get running(): number {
    return this.#commands.size;
  }

  get unacknowledged(): number {
    return this.#outbox.size;
  }

  connect(): void {
    this.#link.connect();
  }

  ready(): Promise<Welcome> {
    return this.#link.ready();
  }

  onStatus(listener: (status: LinkStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  handle(name: string, spec: ActionSpec, run: Handler): () => void {
    return this.#registry.add(name, spec, run);
  }

  close({ withinMs = CLOSE_MS }: { readonly withinMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#leave(withinMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #leave(withinMs: number): Promise<void> {
    this.#commands.shut();
    const enough = new AbortController();
    const waited = sleep(this.#clock, withinMs, enough.signal).catch(() => {});
    if (this.status.state !== 'closed') await Promise.race([this.#settled(), waited]);
    enough.abort();
    this.#link.close();
  }

  /** Resolves when nothing runs and all ends were taken. */
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.add(resolve);
      this.#checkIdle();
    });
  }

  #checkIdle(): void {
    if (this.#commands.size > 0 || this.#outbox.size > 0) return;
    for (const resolve of this.#idle) resolve();
    this.#idle.clear();
  }

  #hello(token: string): string {
    const { clientId, instanceId } = this;
    const { clientType } = this.#options;
    const said = { metadata: this.#metadata, actions: this.#registry.json() };
    return helloFrame({ token, clientId, instanceId, clientType, ...said });
  }

  /** Once for all changes of one turn. While there is no link, the next hello says it. */
  #advertise(): void {
    if (this.#advertising) return;
    this.#advertising = true;
    queueMicrotask(() => {
      this.#advertising = false;
      this.#link.send({ type: 'actions' }, `{"actions":${this.#registry.json()}}`);
    });
  }

  #statusChanged(status: LinkStatus): void {
    if (status.state === 'connected') {
      this.#maxFrame = status.welcome.max_frame_bytes;
      this.#resend();
    }
    if (status.state === 'closed') {
      this.#commands.abort();
      for (const commandId of this.#outbox.clear()) this.#dropped(commandId, 'closed');
      this.#checkIdle();
    }
    const { onStatus, onError } = this.#options;
    guarded(() => onStatus?.(status), onError);
    for (const listener of this.#listeners) guarded(() => listener(status), onError);
  }

  #frame(frame: LinkFrame): void {
    if (frame.type === 'command') this.#command(frame);
    else if (frame.type === 'cancel') this.#commands.cancel(frame.command_id, frame.reason);
    else if (frame.type === 'result_ack') this.#taken(frame.command_id);
    else if (frame.type === 'refused') this.#refused(frame);
  }

  /** The relay writes a command once; this holds even if it does not. */
  #command(frame: CommandFrame): void {
    const known = this.#ledger.get(frame.command_id);
    if (!known) {
      this.#ledger.begin(frame.command_id);
      this.#commands.start(frame);
    } else if (known.state === 'ended') {
      const gone = failure('result_unavailable', 'It ran before, and its end is no longer kept.');
      this.#deliver(frame.command_id, known.text ?? endFrame(frame.command_id, gone, this.#maxFrame));
    } else if (this.#commands.started(frame.command_id)) {
      this.#link.send({ type: 'ack', command_id: frame.command_id });
    }
  }

  #progress(commandId: string, json: string): boolean {
    const text = upFrame({ type: 'progress', command_id: commandId }, json);
    if (this.#link.backlog() > PROGRESS_BACKLOG_BYTES || !fits(text, this.#maxFrame)) return false;
    return this.status.state === 'connected' && this.#mayProgress() && this.#link.sendText(text);
  }

  #end(commandId: string, end: End): void {
    const text = endFrame(commandId, end, this.#maxFrame);
    this.#ledger.end(commandId, text);
    this.#deliver(commandId, text);
    this.#checkIdle();
  }

  #deliver(commandId: string, text: string): void {
    if (this.status.state === 'closed') return this.#dropped(commandId, 'closed');
    this.#outbox.put(commandId, text);
    this.#link.sendText(text);
  }

  #taken(commandId: string): void {
    this.#outbox.remove(commandId);
    this.#checkIdle();
  }

  #refused({ code, frame, command_id, retry_after_ms, message }: Refused): void {
    const { onError } = this.#options;
    guarded(() => onError?.(new Error(`The relay refused ${frame ?? 'a frame'}: ${code}: ${message}`)), undefined);
    if (command_id === undefined || (frame !== 'result' && frame !== 'error' && frame !== 'cancelled')) return;
    if (PASSING.has(code)) return this.#resendIn(Math.max(RESEND_MS, retry_after_ms ?? 0));
    if (this.#outbox.remove(command_id)) this.#dropped(command_id, code);
    this.#checkIdle();
  }

  #resendIn(ms: number): void {
    if (this.#resending) return;
    this.#resending = true;
    this.#clock.after(ms, () => {
      this.#resending = false;
      this.#resend();
    });
  }

  /** Oldest first; those that are taken meanwhile make room for the next. */
  #resend(): void {
    const texts = this.#outbox.texts();
    for (const text of texts.slice(0, RESEND_AT_ONCE)) this.#link.sendText(text);
    if (texts.length > RESEND_AT_ONCE) this.#resendIn(RESEND_MS);
  }

  #dropped(commandId: string, reason: string): void {
    const { onDrop, onError } = this.#options;
    guarded(() => onDrop?.({ commandId, reason }), onError);
  }
}
