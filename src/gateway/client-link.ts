/** Sends core's commands and cancels over a client's socket. Frames from the client do not pass through this file. */
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import { BoundedMap } from '../core/collections.ts';
import type { Command } from '../core/commands/command.ts';
import type { ClientLink } from '../core/commands/link-queues.ts';
import type { LinkSession } from '../core/commands/link-session.ts';
import type { FinishResult } from '../core/commands/stores.ts';
import type { ActionAdvertisement, ClientType, DisconnectCause } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import type { TerminalError } from '../core/history/message.ts';
import type { JsonText } from '../core/json.ts';
import { IN_FLIGHT } from '../core/limits.ts';
import { orElse, thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import type { ByteRates } from '../core/shares/turns.ts';
import type { TraceFields } from '../core/trace-context.ts';
import { CLIENT_REFUSALS, MAX_ERROR_MESSAGE, type CloseReason, type Code } from '../protocol/codes.ts';
import type { Recorded, UpFrame } from '../protocol/frames.ts';
import { aboutFrame, clip, reasonOfCause } from './close.ts';
import { payloadOf, type FrameLimits } from './frame-limits.ts';
import type { FrameWriter, TurnEnd } from './socket.ts';

export interface SocketLinkOwner {
  /**
   * Called when core found that too many bytes wait to be written to the socket. The owner then tells core when fewer
   * wait.
   */
  onBehind(): void;
}

/** Core's ClientLink over a socket: sends commands and cancels to the client. */
export class SocketLink implements ClientLink {
  readonly #writer: FrameWriter;
  readonly #reports: Reports;
  readonly #owner: SocketLinkOwner;

  constructor(writer: FrameWriter, reports: Reports, owner: SocketLinkOwner) {
    this.#writer = writer;
    this.#reports = reports;
    this.#owner = owner;
  }

  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void {
    this.#reports.expect(command);
    const { commandId, action } = command;
    const { traceId, parentSpanId, traceFlags, traceState } = trace ?? command;
    const header = {
      type: 'command',
      command_id: commandId,
      action,
      remaining_ms: Math.max(0, Math.floor(remainingMs)),
      trace_id: traceId ?? undefined,
      parent_span_id: parentSpanId ?? undefined,
      trace_flags: traceFlags ?? undefined,
      trace_state: traceState ?? undefined,
    } as const;
    this.#writer.send(header, params);
  }

  sendCancel(commandId: string, reason: string | null): void {
    this.#writer.send({ type: 'cancel', command_id: commandId, reason: reason ?? undefined });
  }

  backlog(): number {
    if (this.#writer.behind) this.#owner.onBehind();
    return this.#writer.backlog;
  }

  close(cause: DisconnectCause, instanceId: string | null): void {
    if (cause === 'replaced' && instanceId !== null) this.#writer.send({ type: 'replaced', instance_id: instanceId });
    this.#writer.close(reasonOfCause(cause));
  }
}

// Handles what clients report about their commands, and recognizes unexpected reports.

export type ReportFrame = Extract<UpFrame, { type: 'ack' | 'progress' | 'result' | 'error' | 'cancelled' }>;
type EndFrame = Exclude<ReportFrame, { type: 'ack' | 'progress' }>;

/** The error codes with which a client refuses a command. */
const REFUSALS: ReadonlySet<string> = new Set(CLIENT_REFUSALS);
/** The error codes that a client may end a command with. Any other code becomes `handler_failed`. */
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

/**
 * The most commands that a link remembers as written to it; beyond that the oldest are forgotten. At most IN_FLIGHT of
 * them have not ended. The deadline ended the others, and the client may still report their ends.
 */
const REMEMBERED = IN_FLIGHT * 8;

/** Handles a client's reports about its commands: acknowledgements, progress and ends. */
export class Reports {
  readonly #writer: FrameWriter;
  readonly #limits: FrameLimits;
  /** The commands that were written to this link, by id; null before the first command. */
  #window: BoundedMap<string, 'written' | 'acknowledged'> | null = null;

  constructor(writer: FrameWriter, limits: FrameLimits) {
    this.#writer = writer;
    this.#limits = limits;
  }

  /**
   * Remembers that this command was written to the link, or to an earlier link that this one resumes. From then on,
   * reports about the command are expected.
   */
  expect({ commandId }: Command): void {
    this.#window ??= new BoundedMap({ most: REMEMBERED });
    this.#window.set(commandId, 'written');
  }

  /** Returns whether the frame may be handled. False: the frame was refused, and the peer has been sent the refusal. */
  allows(frame: ReportFrame): boolean {
    const window = this.#window;
    const state = window?.get(frame.command_id);
    if (!window || state === undefined) return this.#limits.countUnsolicited(aboutFrame(frame));
    if (frame.type === 'progress') return this.#limits.countProgress(aboutFrame(frame));
    if (frame.type !== 'ack') window.delete(frame.command_id);
    else if (state === 'acknowledged') return this.#limits.countUnsolicited(aboutFrame(frame));
    else window.set(frame.command_id, 'acknowledged');
    return true;
  }

  /**
   * Records a report through the session. Throws or rejects with BadPayload or with an error of the session. Returns no
   * promise if the session answers synchronously.
   */
  take(frame: ReportFrame, session: LinkSession): MaybePromise<unknown> {
    const payload = payloadOf(frame);
    if (frame.type === 'ack') return session.ack(frame.command_id);
    if (frame.type === 'progress') return session.progress(frame.command_id, payload);
    return this.#end(frame, payload, session);
  }

  #end(frame: EndFrame, payload: JsonText | null, session: LinkSession): MaybePromise<void> {
    const { type: kind, command_id } = frame;
    const error = frame.type === 'error' ? errorOf(frame.code, frame.message) : null;
    const refused = error !== null && REFUSALS.has(error.code);
    // If the end could not be recorded, the client may send it again: the command stays in the window.
    const ended = orElse(
      () => session.end(command_id, { kind, payload, error, refused }),
      (reason) => {
        this.#window?.set(command_id, 'acknowledged');
        throw reason;
      },
    );
    return thenDo(ended, (result) => {
      this.#writer.send({ type: 'result_ack', command_id, recorded: RECORDED[result.kind] });
    });
  }
}

function errorOf(code: string, message: string | undefined): TerminalError {
  const known = OWN_CODES.has(code);
  return { code: known ? code : 'handler_failed', message: clip(message ?? '', MAX_ERROR_MESSAGE) };
}

// The types through which the gateway and its links use each other. Contains no code.

/** Who is at the other end of a link: a client of this type, or a caller. */
export type LinkPeer = ClientType | 'caller';

/** An open link, as the gateway uses it. */
export interface OpenLink {
  /** Who is at the other end; null before `welcome`. */
  readonly peer: LinkPeer | null;
  /** Sends `bye` and closes. */
  close(reason: CloseReason): void;
  /** Called once per gateway beat (BEAT_MS). */
  onBeat(): void;
}

/** The dependencies that all links of a gateway share. */
export type GatewayParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly turnEnd: TurnEnd;
  /** The number of the current beat; it grows by one every BEAT_MS. */
  readonly beat: () => number;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  /** The lists of actions that clients advertised most recently. */
  readonly actionLists: ActionLists;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome: (socket: Duplex, principal: Principal) => void;
  /**
   * Called once for each link, when its socket is gone and core has recorded its end. All links share one function, so
   * no link holds a promise of its own.
   */
  readonly onDone: (link: OpenLink) => void;
};

// Keeps the lists of actions that clients advertised most recently, so that equal lists are one object.

/** The greatest number of lists that are kept. Each version of each application that connects needs one. */
const LISTS = 64;
/**
 * The greatest length of a payload whose list is kept, in characters. The text of a list may be a slice of its payload,
 * which then stays in memory too. All kept payloads together have at most 4 Mi characters.
 */
const PAYLOAD_CHARS = 65_536;

type Parsed = {
  readonly payload: string;
  readonly parse: (json: JsonText) => readonly ActionAdvertisement[];
};

/**
 * Remembers parsed lists of actions by their JSON text. All tabs of an application advertise the same list: they share
 * one parsed object, and a list that is known is not parsed again when the tabs reconnect.
 */
export class ActionLists {
  readonly #lists = new BoundedMap<string, readonly ActionAdvertisement[]>({ most: LISTS, order: 'used' });

  /**
   * Returns the list for this text, which is part of `payload`. Calls `parse` if the list is not remembered. If `parse`
   * throws, nothing is remembered.
   */
  get(json: JsonText, { payload, parse }: Parsed): readonly ActionAdvertisement[] {
    if (payload.length > PAYLOAD_CHARS) return parse(json);
    const known = this.#lists.get(json);
    if (known) return known;
    const list = parse(json);
    this.#lists.set(json, list);
    return list;
  }

  get size(): number {
    return this.#lists.size;
  }
}
