/** One check of a client: starts the client, takes its links, sends commands to it and waits for its frames. */
import type { Clock } from '../../clients/link/platform.ts';
import { joinFrame, type UpFrame } from '../../protocol/frames.ts';
import { isEnd, type CommandEnd, type Peer, type PeerLink } from './peer.ts';

/** A program that is the client under test. */
export interface ClientProgram {
  /** Whether it has ended. */
  readonly ended: boolean;
  /** Asks the program to leave, as SIGTERM does. */
  leave(): void;
  /** Ends the program at once, and resolves when it has ended. */
  kill(): Promise<void>;
}

/** Starts the client under test. `changed` must be called when the program ends. */
export type StartProgram = (changed: () => void) => ClientProgram;

/** The failure of a claim: what PROTOCOL.md expects of the client, and what it sent. */
export class ClaimFailure extends Error {
  readonly expected: string;
  readonly received: string;

  constructor(expected: string, received: string) {
    super(`expected ${expected}; received ${received}`);
    this.expected = expected;
    this.received = received;
  }
}

/** The reason why a claim cannot be judged. `unused`: the client does not have this optional feature. */
export class NoVerdict extends Error {
  readonly verdict: 'unused' | 'not_run';

  constructor(verdict: 'unused' | 'not_run', reason: string) {
    super(reason);
    this.verdict = verdict;
  }
}

/** A command that was sent. `from`: the number of frames that had come over its link before. */
export type SentCommand = { readonly id: string; readonly link: PeerLink; readonly from: number };

type Command = {
  readonly id?: string;
  readonly action?: string;
  readonly contextId?: string;
  readonly remainingMs?: number;
};

export type TrialOptions = {
  readonly peer: Peer;
  readonly clock: Clock;
  readonly token: string;
  /** The name of the client's echo action. */
  readonly action: string;
  /** How long each expected answer may take, in milliseconds. */
  readonly withinMs: number;
  /** Starts the client. Null: the author starts it, and nothing can start it again. */
  readonly start: StartProgram | null;
};

/** The upper bound of the first delay of a reconnect, in milliseconds. PROTOCOL.md, section 9, doubles it each time. */
const FIRST_DELAY_MS = 500;
/** How much later than the bound a client may reconnect, for the time that its connection takes. */
const SLACK_MS = 1_000;

export class Trial {
  readonly options: TrialOptions;
  readonly peer: Peer;
  /** The number of links that the present run of the client has lost. */
  losses = 0;
  #program: ClientProgram | null = null;
  #commands = 0;
  /** The number of links that `nextLink` has taken or `restart` has passed over. */
  #taken = 0;

  constructor(options: TrialOptions) {
    this.options = options;
    this.peer = options.peer;
  }

  /** For each run of the client, the instance ids of its hellos, in order. */
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

  /** Starts the client, which must not run. Throws NoVerdict if nothing can start it. */
  start(): void {
    const { start } = this.options;
    if (!start)
      throw new NoVerdict('not_run', 'needs the command that starts the client: callboard conformance -- <command>');
    this.losses = 0;
    this.instances.push([]);
    this.#program = start(() => this.peer.wake());
  }

  /** Ends the client and starts it again. Its next hello is answered with this admission. */
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

  /** Resolves with the next link that sends its hello; undefined if none comes in time or the program ends first. */
  async nextLink(withinMs: number): Promise<PeerLink | undefined> {
    await this.peer.until(() => (this.peer.links.length > this.#taken ? true : this.#hasEnded()), withinMs);
    return this.#take();
  }

  /** Takes the newest link, and notes the instance of the run. */
  #take(): PeerLink | undefined {
    const fresh = this.peer.links.slice(this.#taken);
    this.#taken = this.peer.links.length;
    this.instances.at(-1)?.push(...fresh.map(({ hello }) => hello.instance_id ?? ''));
    return fresh.at(-1);
  }

  #hasEnded(): true | undefined {
    return this.#program?.ended === true ? true : undefined;
  }

  /** Returns how long a client may take to come back after its next lost link, in milliseconds. */
  returnsWithinMs(): number {
    return Math.min(30_000, FIRST_DELAY_MS * 2 ** this.losses) + SLACK_MS + this.options.withinMs;
  }

  /** Resolves with whether the client stays away: no further socket within the longest delay of its next attempt. */
  async staysAway(): Promise<boolean> {
    const before = this.peer.requests.length;
    const waitMs = Math.min(30_000, FIRST_DELAY_MS * 2 ** this.losses) + SLACK_MS;
    await this.peer.until(() => (this.peer.requests.length > before ? true : this.#hasEnded()), waitMs);
    return this.peer.requests.length === before;
  }

  /** Sends a command. `params`: a value, JSON text as it is, or undefined for no payload. */
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

  /** Returns the frames about a command that came after it was sent, over its link. */
  framesOf({ id, link, from }: SentCommand): readonly UpFrame[] {
    return link.frames.slice(from).filter((frame) => 'command_id' in frame && frame.command_id === id);
  }

  /**
   * Resolves with the first frame about a command that `is` accepts. Throws ClaimFailure if none comes in time, or none
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

  /** Resolves with the end of a command. Throws ClaimFailure as `frameOf` does. */
  endOf(sent: SentCommand, expected: string, extraMs = 0): Promise<CommandEnd> {
    return this.frameOf(sent, expected, { is: isEnd, extraMs });
  }

  /** Resolves after the round trip of an echo. By then the client has answered all earlier frames. */
  async settled(): Promise<void> {
    await this.endOf(this.command({}), 'the end of an echo of `{}`');
  }

  /** Describes what the client sent about a command instead of what was expected. */
  #receivedOf(sent: SentCommand): string {
    const frames = this.framesOf(sent).map(shown);
    const code = sent.link.closeCode;
    const lost =
      code === null ? `nothing more within ${this.options.withinMs} ms` : `the client closed its socket (${code})`;
    return [...frames, frames.length === 0 ? lost.replace(' more', '') : lost].join(', then ');
  }
}

/** Returns a frame in words, such as `` `error` with the code `handler_failed` ``. */
export function shown(frame: UpFrame): string {
  if (frame.type === 'error') return `\`error\` with the code \`${frame.code}\``;
  if (frame.payload === null) return `\`${frame.type}\``;
  const text = frame.payload.length > 100 ? `${frame.payload.slice(0, 100)}...` : frame.payload;
  return `\`${frame.type}\` with ${text}`;
}
