/**
 * Acts as the relay for a client under test: starts the client, accepts its links, sends it commands, and waits for its
 * frames.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Clock } from '../../clients/link/platform.ts';
import { IN_FLIGHT, JSON_DEPTH, MAX_FRAME_BYTES } from '../../core/limits.ts';
import { CLOSE, type CloseReason, reconnectAfter } from '../../protocol/codes.ts';
import { FRAME_SEPARATOR, FRAMES_PER_MESSAGE, isFault, joinFrame, parseUp } from '../../protocol/frame-codec.ts';
import { SUBPROTOCOL, type DownHeader, type UpFrame } from '../../protocol/frames.ts';
import { jsonFault } from '../../protocol/json.ts';

export type Hello = Extract<UpFrame, { type: 'hello' }>;
type Welcome = Extract<DownHeader, { type: 'welcome' }>;
export type CommandEnd = Extract<UpFrame, { type: 'result' | 'error' | 'cancelled' }>;

/** The answer to a hello: a refusal, or a `welcome` with these members. `holdMs`: how long the answer is delayed. */
export type Admission = {
  readonly welcome?: Partial<Welcome>;
  readonly refuse?: CloseReason;
  readonly holdMs?: number;
};

/**
 * The interval of pings, in milliseconds. It is shorter than every `dead_ms` that a claim sets, so that no client drops
 * its link because of silence.
 */
const PING_MS = 1_000;
const DEAD_MS = 60_000;

/** Whether a frame is the end of a command. */
export function isEnd(frame: UpFrame): frame is CommandEnd {
  return frame.type === 'result' || frame.type === 'error' || frame.type === 'cancelled';
}

/** One link of the client, from its hello to the end of its socket. */
export class PeerLink {
  readonly hello: Hello;
  /** The frames after the hello, in order. */
  readonly frames: UpFrame[] = [];
  /** The number of frames that came after the hello and before its answer. */
  early = 0;
  /** The largest number of frames in one message. */
  joined = 1;
  /** The close code of the client's socket; null while it is open. */
  closeCode: number | null = null;
  /** Whether the end of this command is acknowledged at once. */
  acknowledges = (_commandId: string): boolean => true;
  /** Whether the hello was answered. */
  answered = false;
  /** If true, nothing at all is sent, as over a half-open socket. */
  silent = false;
  readonly #socket: WebSocket;
  readonly #known = new Set<string>();

  constructor(socket: WebSocket, hello: Hello) {
    this.#socket = socket;
    this.hello = hello;
  }

  send(header: DownHeader, payload: string | null = null): void {
    this.sendText(joinFrame(header, payload));
  }

  sendText(text: string): void {
    if (!this.silent && this.closeCode === null) this.#socket.send(text);
  }

  acknowledge(commandId: string): void {
    const recorded = this.#known.has(commandId) ? 'duplicate' : 'recorded';
    this.#known.add(commandId);
    this.send({ type: 'result_ack', command_id: commandId, recorded });
  }

  /** Ends the link as a relay does: sends `bye`, then closes with the close code. */
  bye(reason: CloseReason, afterMs?: number, reconnect = reconnectAfter(reason) === 'yes'): void {
    const code = CLOSE[reason];
    const after = afterMs === undefined ? {} : { after_ms: afterMs };
    this.send({ type: 'bye', code, reason, reconnect, ...after });
    this.#socket.close(code, reason);
  }

  /** Breaks the connection without a close frame. */
  drop(): void {
    this.#socket.terminate();
  }

  /** Stores a frame, and answers it if every relay would answer. */
  take(frame: UpFrame): void {
    this.frames.push(frame);
    if (isEnd(frame) && this.acknowledges(frame.command_id)) this.acknowledge(frame.command_id);
    else if (frame.type === 'auth') this.send({ type: 'renewed' });
    else if (frame.type === 'site') this.send({ type: 'site_ack', ref: frame.ref });
    else if (frame.type === 'pause') this.send({ type: 'pause_ack', ref: frame.ref });
    else if (frame.type === 'invoke' || frame.type === 'await' || frame.type === 'cancel') {
      const message = 'This is a test of clients: there is nothing to call.';
      this.send({ type: 'refused', code: 'forbidden', message, frame: frame.type, ref: frame.ref });
    }
  }
}

type PeerOptions = {
  /** The port to listen on; 0: any free port. */
  readonly port: number;
  readonly clock: Clock;
  /** A signal that ends each wait when it is aborted. */
  readonly stopped: AbortSignal;
};

/** An endpoint `/connect` on 127.0.0.1, to which one client connects repeatedly. */
export class Peer implements AsyncDisposable {
  readonly url: string;
  /** Descriptions of what the client sent that is not a valid frame. */
  readonly faults: string[] = [];
  /** Descriptions of the frames that came before a hello. */
  readonly beforeHello: string[] = [];
  /** All links on which a hello arrived. The last one is the present link. */
  readonly links: PeerLink[] = [];
  /** The HTTP requests of all sockets, including sockets without a hello. */
  readonly requests: IncomingMessage[] = [];
  /** The answer to the next hellos. */
  admission: Admission = {};
  readonly #server: WebSocketServer;
  readonly #clock: Clock;
  readonly #stopped: AbortSignal;
  #changed = Promise.withResolvers<void>();

  private constructor(server: WebSocketServer, url: string, { clock, stopped }: PeerOptions) {
    this.#server = server;
    this.url = url;
    this.#clock = clock;
    this.#stopped = stopped;
    stopped.addEventListener('abort', () => this.wake(), { once: true });
    server.on('connection', (socket, request) => this.#opened(socket, request));
  }

  /** Opens the endpoint. Rejects if the port is taken. */
  static async open(options: PeerOptions): Promise<Peer> {
    // A client without a subprotocol is accepted here, so that the other claims can be checked too.
    const handleProtocols = (offered: Set<string>): string | false => offered.has(SUBPROTOCOL) && SUBPROTOCOL;
    const server = new WebSocketServer({ host: '127.0.0.1', port: options.port, path: '/connect', handleProtocols });
    await once(server, 'listening');
    const address = server.address();
    if (typeof address !== 'object' || address === null) throw new Error('The endpoint has no address.');
    return new Peer(server, `ws://127.0.0.1:${address.port}/connect`, options);
  }

  /**
   * Resolves with the result of `find` as soon as it is not undefined, and with undefined after `withinMs`
   * milliseconds. Rejects with the reason of `stopped`. `find` is called after each event of a link, and after `wake`.
   */
  async until<T>(find: () => T | undefined, withinMs: number): Promise<T | undefined> {
    let over = false;
    const cancel = this.#clock.after(withinMs, () => {
      over = true;
      this.wake();
    });
    try {
      for (;;) {
        this.#stopped.throwIfAborted();
        const found = find();
        if (found !== undefined || over) return found;
        await this.#changed.promise;
      }
    } finally {
      cancel();
    }
  }

  /** Makes each pending `until` call its `find` again. */
  wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    await new Promise<void>((done) => this.#server.close(() => done()));
  }

  #opened(socket: WebSocket, request: IncomingMessage): void {
    this.requests.push(request);
    let link: PeerLink | null = null;
    let stopPings = (): void => {};
    socket.on('error', () => {});
    socket.on('message', (data: Buffer, isBinary) => {
      for (const frame of this.#framesIn(data, isBinary, link)) {
        if (link) link.take(frame);
        else if (frame.type !== 'hello') this.beforeHello.push(`\`${frame.type}\` before \`hello\``);
        else {
          link = new PeerLink(socket, frame);
          stopPings = this.#ping(link);
          this.#answer(link);
        }
      }
      this.wake();
    });
    socket.on('close', (code) => {
      stopPings();
      if (link) link.closeCode = code;
      this.wake();
    });
    this.wake();
  }

  /** Returns the valid frames in a message, and notes what is not valid. */
  #framesIn(data: Buffer, isBinary: boolean, link: PeerLink | null): readonly UpFrame[] {
    if (isBinary) return this.#fault('a binary frame');
    if (data.length > MAX_FRAME_BYTES) return this.#fault(`a message of ${data.length} bytes`);
    const texts = data.toString('utf8').split(FRAME_SEPARATOR);
    if (link) link.joined = Math.max(link.joined, texts.length);
    return texts.flatMap((text) => {
      const frame = parseUp(text);
      if (isFault(frame))
        return this.#fault(`${frame.frame === null ? 'a frame' : `\`${frame.frame}\``}: ${frame.detail}`);
      const fault = frame.payload === null ? null : jsonFault(frame.payload);
      return fault === null ? [frame] : this.#fault(`\`${frame.type}\`: the payload is not JSON (${fault})`);
    });
  }

  #fault(text: string): readonly [] {
    this.faults.push(text);
    return [];
  }

  #answer(link: PeerLink): void {
    const { welcome, refuse, holdMs = 0 } = this.admission;
    this.links.push(link);
    const answer = (): void => {
      link.early = link.frames.length;
      link.answered = true;
      this.wake();
      if (refuse) return link.bye(refuse, undefined, false);
      link.send({ type: 'welcome', ...this.#welcome(link), ...welcome });
    };
    if (holdMs > 0) this.#clock.after(holdMs, answer);
    else answer();
  }

  #welcome({ hello }: PeerLink): Omit<Welcome, 'type'> {
    const before = this.links.slice(0, -1).findLast(({ hello: { client_id } }) => client_id === hello.client_id);
    return {
      node_id: 'conformance',
      user_id: 'author',
      client_id: hello.client_id,
      epoch: this.links.length,
      resumed: before?.hello.instance_id === hello.instance_id,
      ping_ms: PING_MS,
      dead_ms: DEAD_MS,
      max_frame_bytes: MAX_FRAME_BYTES,
      in_flight: IN_FLIGHT,
      max_depth: JSON_DEPTH,
      frames_per_message: FRAMES_PER_MESSAGE,
      idempotency_window_ms: 3_600_000,
    };
  }

  #ping(link: PeerLink): () => void {
    let cancel = (): void => {};
    const again = (): void => {
      cancel = this.#clock.after(PING_MS, () => {
        link.send({ type: 'ping' });
        again();
      });
    };
    again();
    return () => cancel();
  }
}

// The trial of a client: starts it, follows its links, sends it commands, and waits for its frames.

/** The program that is the client under test. */
export interface ClientProgram {
  /** Whether the program has ended. */
  readonly ended: boolean;
  /** Asks the program to leave, like SIGTERM. */
  leave(): void;
  /** Kills the program. Resolves when it has ended. */
  kill(): Promise<void>;
}

/** Starts the client under test. The program must call `changed` when it ends. */
export type StartProgram = (changed: () => void) => ClientProgram;

/** The client does not meet a claim: what PROTOCOL.md expects, and what the client sent. */
export class ClaimFailure extends Error {
  readonly expected: string;
  readonly received: string;

  constructor(expected: string, received: string) {
    super(`expected ${expected}; received ${received}`);
    this.expected = expected;
    this.received = received;
  }
}

/** A claim cannot be judged. `unused`: the client does not have this optional feature. */
export class NoVerdict extends Error {
  readonly verdict: 'unused' | 'not_run';

  constructor(verdict: 'unused' | 'not_run', reason: string) {
    super(reason);
    this.verdict = verdict;
  }
}

/** A command that was sent. `from`: how many frames had arrived over the link before. */
export type SentCommand = { readonly id: string; readonly link: PeerLink; readonly from: number };

type Command = {
  readonly id?: string;
  readonly action?: string;
  readonly contextId?: string;
  readonly remainingMs?: number;
};

type TrialOptions = {
  readonly peer: Peer;
  readonly clock: Clock;
  readonly token: string;
  /** The name of the client's echo action. */
  readonly action: string;
  /** The time limit for each expected answer, in milliseconds. */
  readonly withinMs: number;
  /** Starts the client. Null: the author starts the client by hand, and it cannot be started again. */
  readonly start: StartProgram | null;
};

/**
 * The upper bound of a client's first reconnect delay, in milliseconds. It doubles with each attempt (PROTOCOL.md,
 * section 9).
 */
const FIRST_DELAY_MS = 500;
/** How much later than the bound a client may reconnect, in milliseconds, because connecting takes time. */
const SLACK_MS = 1_000;

export class Trial {
  readonly options: TrialOptions;
  readonly peer: Peer;
  /** How many links the present run of the client has lost. */
  losses = 0;
  #program: ClientProgram | null = null;
  #commands = 0;
  /** How many links `nextLink` has returned or `restart` has skipped. */
  #taken = 0;

  constructor(options: TrialOptions) {
    this.options = options;
    this.peer = options.peer;
  }

  /** For each run of the client, the instance ids in its hellos, in order. */
  readonly instances: string[][] = [];

  get program(): ClientProgram | null {
    return this.#program;
  }

  /** The present link. Throws ClaimFailure if the client has none. */
  get link(): PeerLink {
    const link = this.peer.links.at(-1);
    if (!link || link.closeCode !== null) throw new ClaimFailure('a client with a link', 'none');
    return link;
  }

  /** Waits until the client is connected, if it is between two links. Starts it again if its program has ended. */
  async connected(): Promise<void> {
    const open = (): true | undefined => (this.peer.links.at(-1)?.closeCode === null ? true : undefined);
    if (open()) return;
    if (!this.#hasEnded()) await this.peer.until(() => open() ?? this.#hasEnded(), this.returnsWithinMs());
    this.losses += 1;
    if (this.#hasEnded()) await this.restart();
    await this.nextLink(this.options.withinMs);
  }

  /** Starts the client, which must not be running. Throws NoVerdict if nothing can start it. */
  start(): void {
    const { start } = this.options;
    if (!start)
      throw new NoVerdict('not_run', 'needs the command that starts the client: callboard conformance -- <command>');
    this.losses = 0;
    this.instances.push([]);
    this.#program = start(() => this.peer.wake());
  }

  /** Ends the client and starts it again. `admission`: the answer to its next hello. */
  async restart(admission: Peer['admission'] = {}): Promise<void> {
    if (!this.options.start) return this.start();
    await this.#program?.kill();
    this.#taken = this.peer.links.length;
    this.peer.admission = admission;
    this.start();
  }

  async stop(): Promise<void> {
    await this.#program?.kill();
  }

  /**
   * Resolves with the next link on which a hello arrives. Undefined if there is none in time, or if the program ends
   * first.
   */
  async nextLink(withinMs: number): Promise<PeerLink | undefined> {
    await this.peer.until(() => (this.peer.links.length > this.#taken ? true : this.#hasEnded()), withinMs);
    return this.#take();
  }

  /** Returns the newest link, and stores the instance ids of the new hellos. */
  #take(): PeerLink | undefined {
    const fresh = this.peer.links.slice(this.#taken);
    this.#taken = this.peer.links.length;
    this.instances.at(-1)?.push(...fresh.map(({ hello }) => hello.instance_id ?? ''));
    return fresh.at(-1);
  }

  #hasEnded(): true | undefined {
    return this.#program?.ended === true ? true : undefined;
  }

  /** Returns how long the client may take to reconnect after it loses its next link, in milliseconds. */
  returnsWithinMs(): number {
    return Math.min(30_000, FIRST_DELAY_MS * 2 ** this.losses) + SLACK_MS + this.options.withinMs;
  }

  /**
   * Resolves with whether the client stays away: it opens no further socket within the longest delay of its next
   * attempt.
   */
  async staysAway(): Promise<boolean> {
    const before = this.peer.requests.length;
    const waitMs = Math.min(30_000, FIRST_DELAY_MS * 2 ** this.losses) + SLACK_MS;
    await this.peer.until(() => (this.peer.requests.length > before ? true : this.#hasEnded()), waitMs);
    return this.peer.requests.length === before;
  }

  /** Sends a command. `params`: a value, JSON text that is sent unchanged, or undefined for no payload. */
  command(params: object | string | undefined, given: Command = {}): SentCommand {
    const { id, action = this.options.action, contextId, remainingMs = 60_000 } = given;
    const link = this.link;
    const command_id = id ?? `conformance-${++this.#commands}`;
    const sent = { id: command_id, link, from: link.frames.length };
    const payload = typeof params === 'object' ? JSON.stringify(params) : (params ?? null);
    const header = { type: 'command', command_id, action, remaining_ms: remainingMs, context_id: contextId };
    link.sendText(joinFrame(header, payload));
    return sent;
  }

  /** Returns the frames about a command that came over its link after it was sent. */
  framesOf({ id, link, from }: SentCommand): readonly UpFrame[] {
    return link.frames.slice(from).filter((frame) => 'command_id' in frame && frame.command_id === id);
  }

  /**
   * Resolves with the first frame about a command that `is` accepts. Throws ClaimFailure if there is none in time, or
   * before the link closes.
   */
  async frameOf<T extends UpFrame>(
    sent: SentCommand,
    expected: string,
    { is, extraMs = 0 }: { readonly is: (frame: UpFrame) => frame is T; readonly extraMs?: number },
  ): Promise<T> {
    const { withinMs } = this.options;
    const find = (): T | undefined => this.framesOf(sent).find(is);
    const found = await this.peer.until(
      () => find() ?? (sent.link.closeCode === null ? undefined : null),
      withinMs + extraMs,
    );
    if (!found) throw new ClaimFailure(expected, this.#receivedOf(sent));
    return found;
  }

  /** Resolves with the end of a command. Throws ClaimFailure like `frameOf`. */
  endOf(sent: SentCommand, expected: string, extraMs = 0): Promise<CommandEnd> {
    return this.frameOf(sent, expected, { is: isEnd, extraMs });
  }

  /** Resolves after an echo command has ended. By then the client has answered all earlier frames. */
  async settled(): Promise<void> {
    await this.endOf(this.command({}), 'the end of an echo of `{}`');
  }

  /** Describes what the client sent about a command instead of the expected frame. */
  #receivedOf(sent: SentCommand): string {
    const frames = this.framesOf(sent).map(shown);
    const code = sent.link.closeCode;
    const lost =
      code === null ? `nothing more within ${this.options.withinMs} ms` : `the client closed its socket (${code})`;
    return [...frames, frames.length === 0 ? lost.replace(' more', '') : lost].join(', then ');
  }
}

/** Describes a frame in words, such as `` `error` with the code `handler_failed` ``. */
export function shown(frame: UpFrame): string {
  if (frame.type === 'error') return `\`error\` with the code \`${frame.code}\``;
  if (frame.payload === null) return `\`${frame.type}\``;
  const text = frame.payload.length > 100 ? `${frame.payload.slice(0, 100)}...` : frame.payload;
  return `\`${frame.type}\` with ${text}`;
}
