/**
 * The frames of PROTOCOL.md: `UP` has those that clients and callers send, `DOWN` those that the relay sends. Also the
 * rows of reports, and the functions that parse and write frames.
 */
import {
  CHECKS,
  DOWN_CHECKS,
  ID,
  NAME,
  WORDS,
  checkRow,
  faultIn,
  membersOf,
  type BareCheck,
  type DownTable,
  type FieldKind,
  type FieldRule,
  type FieldsOf,
  type RowTable,
  type Table,
} from './fields.ts';
import { isRecord, ownSlice, parseObject } from './json.ts';

/** What a client or caller sends. Only frames in UP_WITH_PAYLOAD may have a payload, the text after the header line. */
export const UP = {
  /**
   * First frame of a link. With `client_id` the peer is a client, and `instance_id` and `client_type` are required;
   * without it the peer is a caller. `places`: the client knows places, so a command may name one of its contexts.
   * Payload: `{ metadata?, actions? }`.
   */
  hello: { token: 'token', client_id: 'id?', instance_id: 'id?', client_type: 'clientType?', places: 'bool?' },
  /** A new token of the same user. Answer: `renewed`, or `refused`; the link then lives until its old token expires. */
  auth: { token: 'token' },
  /** The client received the command and will handle it. */
  ack: { command_id: 'id' },
  /**
   * Progress of a running command. Payload: any JSON. `number`: how many reports of this command the handler has made,
   * this one and those that the client dropped included. A caller sees from it which reports it missed.
   */
  progress: { command_id: 'id', number: 'int?' },
  /** The handler returned. Payload: the result; null when absent. */
  result: { command_id: 'id' },
  /** The handler failed, or the client refused the command; then `code` is one of CLIENT_REFUSALS. */
  error: { command_id: 'id', code: 'prose', message: 'prose?' },
  /** The client stopped the command after a `cancel`. Payload: a partial result, if any. */
  cancelled: { command_id: 'id' },
  /** Replaces all advertisements of the client. Payload: `{ actions }`. */
  actions: {},
  /** Payload: `{ contexts?, windows? }`, each `{ snapshot?, set?, removed? }`. PROTOCOL.md lists the rows. */
  report: {},
  /** Registers a cooperative site (payload: its definition) or removes it. Answer: `site_ack` or `refused`. */
  site: { ref: 'id', op: 'siteOp', site_id: 'id' },
  /** The client leaves: the relay dispatches nothing more on this link and answers `closed`. */
  closing: {},
  pong: {},
  /**
   * Payload: the params; `{}` when absent. The answers have the same `ref`: `refused`; or the `stage` and `progress`
   * frames that were requested, then `outcome`.
   */
  invoke: {
    ref: 'id',
    user_id: 'user?',
    client_id: 'id',
    action: 'name',
    instance_id: 'id?',
    /** The context of the client in which the command may run. Any when absent. */
    context_id: 'id?',
    command_id: 'id?',
    wait_for: 'waitFor?',
    /** Which `stage` frames the caller wants: the first one, or all. None when absent. */
    stages: 'stages?',
    /** Whether the caller wants `progress` frames. */
    progress: 'bool?',
    connect_within_ms: 'int?',
    respond_within_ms: 'int?',
    trace_id: 'text?',
    parent_span_id: 'text?',
    /** The flags of W3C Trace Context, two hexadecimal digits. */
    trace_flags: 'text?',
    /** The `tracestate` of W3C Trace Context. */
    trace_state: 'text?',
  },
  await: {
    ref: 'id',
    user_id: 'user?',
    client_id: 'id',
    command_id: 'id',
    wait_for: 'waitFor?',
    stages: 'stages?',
    progress: 'bool?',
    within_ms: 'int?',
    trace_id: 'text?',
    parent_span_id: 'text?',
    trace_flags: 'text?',
    trace_state: 'text?',
  },
  cancel: { ref: 'id', user_id: 'user?', client_id: 'id', command_id: 'id', reason: 'text?' },
  /** Ends the caller's wait of this `ref`, never the command. Not answered, even when there is no such wait. */
  leave: { ref: 'id' },
} as const satisfies Record<string, Table>;

/** The frames that the relay sends to a client or a caller. */
export const DOWN = {
  /**
   * The link is open. `epoch`: a number that grows by one or more with each connection of the client. `resumed`: the
   * same instance reconnected. Members ending in `_ms` are durations in milliseconds; `token_expires_at` is epoch
   * milliseconds. `client_id` is absent for a caller.
   */
  welcome: {
    node_id: 'id',
    user_id: 'user?',
    client_id: 'id?',
    epoch: 'int?',
    resumed: 'bool?',
    replaced_instance_id: 'id?',
    ping_ms: 'int',
    dead_ms: 'int',
    max_frame_bytes: 'int',
    /** The most frames that the peer may put into one message; one if absent. */
    frames_per_message: 'int?',
    in_flight: 'int',
    idempotency_window_ms: 'int?',
    token_expires_at: 'int?',
  },
  /** The relay accepted the new token of `auth`. */
  renewed: { token_expires_at: 'int?' },
  /**
   * Run this command. Payload: the params. `remaining_ms`: time left until the deadline, by the relay's clock.
   * `context_id`: run it in this context, or refuse it.
   */
  command: {
    command_id: 'id',
    action: 'name',
    remaining_ms: 'int',
    context_id: 'id?',
    trace_id: 'text?',
    parent_span_id: 'text?',
    trace_flags: 'text?',
    trace_state: 'text?',
  },
  /** To a client: stop this command. */
  cancel: { command_id: 'id', reason: 'text?' },
  /** The relay has handled the end that the client reported. The client may forget it. `recorded`: one of RECORDED. */
  result_ack: { command_id: 'id', recorded: 'text' },
  /** To a client: the relay carried out the `site` frame with this `ref`. */
  site_ack: { ref: 'id' },
  /** To a caller: the stage that its command reached. */
  stage: { ref: 'id', command_id: 'id', stage: 'text' },
  /**
   * To a caller that requested it: progress of its command. Payload: any JSON. `number` is the number that the client
   * gave the report, and grows with each frame; a gap means that reports were lost or dropped on their way. Absent if
   * the client does not number its reports.
   */
  progress: { ref: 'id', command_id: 'id', number: 'int?' },
  /** To a caller: its wait is over. Without `outcome`, the command has not ended. Payload: the result. */
  outcome: {
    ref: 'id',
    command_id: 'id',
    rpc_id: 'id?',
    outcome: 'text?',
    stage: 'text',
    execution: 'text',
    error_code: 'text?',
    error_message: 'text?',
  },
  /** To a caller: the result of its `cancel`. */
  receipt: { ref: 'id', command_id: 'id', state: 'text' },
  /** The relay refused `frame`, identified by its `ref` or `command_id`. The link stays open unless `bye` follows. */
  refused: {
    code: 'text',
    message: 'text',
    frame: 'text?',
    ref: 'id?',
    command_id: 'id?',
    retry_after_ms: 'int?',
    by: 'text?',
    /** The name of the shared resource that has no room left, when the code is `share_exceeded` or `store_full`. */
    share: 'text?',
  },
  /** Answers `closing`: no further command follows. Payload: `{ commands }`, the ids of those that have not ended. */
  closed: {},
  /** Another instance of this client replaced this one. */
  replaced: { instance_id: 'id' },
  ping: {},
  /** Last frame before the relay closes the socket: the close code, whether to reconnect, and the minimum delay. */
  bye: { code: 'int', reason: 'text', reconnect: 'bool', after_ms: 'int?' },
} as const satisfies Record<string, DownTable>;

/**
 * What the relay did with a reported end. `recorded`: it ended the command. `duplicate`: the relay already knew this
 * end. `late`: the command had already ended in another way. `fenced`: the command is bound to another instance. Late
 * and fenced ends are kept as evidence only. `unknown`: there is no such command.
 */
const RECORDED = ['recorded', 'duplicate', 'late', 'fenced', 'unknown'] as const;
export type Recorded = (typeof RECORDED)[number];

/** The frames that may have a payload; on any other frame, a payload is a fault. */
export const UP_WITH_PAYLOAD = ['hello', 'progress', 'result', 'cancelled', 'actions', 'report', 'site', 'invoke'];
export const DOWN_WITH_PAYLOAD = ['command', 'closed', 'outcome', 'progress'];

// Marked as pure, so that a client library, which reads frames in one direction only, is built without the other table.
const UP_FORMS = /* @__PURE__ */ formsOf(UP, CHECKS, UP_WITH_PAYLOAD);
const DOWN_FORMS = /* @__PURE__ */ formsOf(DOWN, DOWN_CHECKS, DOWN_WITH_PAYLOAD);

export type UpType = keyof typeof UP;
type DownType = keyof typeof DOWN;
type FrameOf<T extends Record<string, Table>> = {
  [K in keyof T & string]: { readonly type: K; readonly payload: string | null } & FieldsOf<T[K]>;
}[keyof T & string];

export type UpFrame = FrameOf<typeof UP>;
export type DownFrame = FrameOf<typeof DOWN>;
/** A header to send: a frame without its payload. */
export type UpHeader = { [K in UpType]: { readonly type: K } & FieldsOf<(typeof UP)[K]> }[UpType];
export type DownHeader = { [K in DownType]: { readonly type: K } & FieldsOf<(typeof DOWN)[K]> }[DownType];

/** Returns a frame or a fault; never throws. Leaves it to the code that uses the payload to check that it is JSON. */
export function parseUp(text: string): UpFrame | FrameFault {
  return parseReport(text) ?? parseInvoke(text) ?? (parse(UP_FORMS, text) as UpFrame | FrameFault);
}

/** Does the same as `parseUp`, for frames that the relay sends. */
export function parseDown(text: string): DownFrame | FrameFault {
  return parse(DOWN_FORMS, text) as DownFrame | FrameFault;
}

export function isFault(frame: UpFrame | DownFrame | FrameFault): frame is FrameFault {
  return 'fault' in frame;
}

type Forms = ReadonlyMap<string, { readonly members: readonly FieldRule[]; readonly takesPayload: boolean }>;

function formsOf<Kind extends FieldKind>(
  tables: Readonly<Record<string, Readonly<Record<string, Kind | `${Kind}?`>>>>,
  checks: Readonly<Record<Kind, BareCheck>>,
  withPayload: readonly string[],
): Forms {
  return new Map(
    Object.entries(tables).map(([type, table]) => [
      type,
      { members: membersOf(table, checks), takesPayload: withPayload.includes(type) },
    ]),
  );
}

function parse(forms: Forms, text: string): unknown {
  const raw = splitFrame(text);
  if ('fault' in raw) return raw;
  const { header, payload } = raw;
  const { type } = header;
  const form = forms.get(type);
  if (!form) return faultOf(`type: unknown frame ${JSON.stringify(type)}`, type, refOf(header));
  const frame: Record<string, unknown> = { type, payload };
  for (const member of form.members) {
    // No field has the name of a member of Object.prototype, so this reads only own members of the header.
    const value = header[member.field];
    const wrong = faultIn(member, value);
    if (wrong !== null) return faultOf(wrong, type, refOf(header));
    if (value !== undefined && value !== null) frame[member.field] = value;
  }
  if (payload !== null && !form.takesPayload) return faultOf(`${type}: takes no payload`, type, refOf(header));
  return frame;
}

function refOf({ ref }: RawFrame['header']): string | null {
  return typeof ref === 'string' && ref.length <= 128 ? ref : null;
}

/**
 * One text frame: a JSON header on the first line, then optionally a newline and the payload's JSON text. The relay
 * never serializes the payload again, so it stays text here. The code that uses the payload checks that it is JSON.
 */
type RawFrame = {
  readonly header: Record<string, unknown> & { readonly type: string };
  readonly payload: string | null;
};

/** What is wrong with a frame. `frame` is its type and `ref` its reference; each is null when it could not be read. */
type FrameFault = {
  readonly fault: 'invalid_argument';
  readonly detail: string;
  readonly frame: string | null;
  readonly ref: string | null;
};

export const SUBPROTOCOL = 'callboard.v1';

/** Separates the frames of one message. No valid frame holds it, because JSON text escapes control characters. */
export const FRAME_SEPARATOR = '\u001e';
/** The most frames that the relay reads from one message. */
export const FRAMES_PER_MESSAGE = 64;

/** Splits a text into header and payload. Returns a fault for an invalid header; never throws. */
function splitFrame(text: string): RawFrame | FrameFault {
  const cut = text.indexOf('\n');
  const head = cut < 0 ? text : text.slice(0, cut);
  const payload = cut < 0 ? null : ownSlice(text, cut + 1, text.length);
  const header = parseObject(head);
  if (!header) return faultOf('the first line is not a JSON object', null, null);
  const { type } = header;
  if (typeof type !== 'string' || type.length > 32) return faultOf('type: a string was expected', null, null);
  return { header: header as RawFrame['header'], payload };
}

/** Writes a frame. `payload`: JSON text; newlines in it do no harm, because only the first one separates. */
export function joinFrame(header: { readonly type: string }, payload: string | null = null): string {
  const head = JSON.stringify(header);
  return payload === null ? head : `${head}\n${payload}`;
}

function faultOf(detail: string, frame: string | null, ref: string | null): FrameFault {
  return { fault: 'invalid_argument', detail, frame, ref };
}

// The members of a `report` payload, in which a client reports its contexts and windows. The relay reads them, and the
// client sends them.

/** One execution context. Besides these members, it may have `metadata`: any JSON of at most METADATA_MAX_BYTES. */
export const CONTEXT = {
  context_id: 'id',
  status: 'contextStatus',
  ownership: 'ownership',
  window_id: 'id?',
  /** The task that the context is assigned to now. */
  task_id: 'id?',
  title: 'title?',
} as const satisfies RowTable;

/**
 * One browser window. The last three members are the window's own counts, 0 when absent. The relay shows them while the
 * client reports no contexts.
 */
export const WINDOW = {
  window_id: 'id',
  ownership: 'ownership',
  focused: 'bool',
  type: 'word',
  state: 'word',
  incognito: 'bool',
  tab_count: 'count',
  capacity: 'count?',
  draining: 'bool',
  status: 'windowStatus',
  worker_count: 'count?',
  idle_count: 'count?',
  busy_count: 'count?',
} as const satisfies RowTable;

export type WireContext = FieldsOf<typeof CONTEXT>;
export type WireWindow = FieldsOf<typeof WINDOW>;

/** The limits of one client: contexts, windows, and the bytes of metadata of each context. */
export const CONTEXTS_MAX = 1000;
export const WINDOWS_MAX = 100;
export const METADATA_MAX_BYTES = 16 * 1024;

/**
 * Returns the row, or a description of its first fault. The description begins with the wrong member's name if the row
 * is an object. Never throws. Members that the table does not name are returned unchecked.
 */
export function parseRow<T extends RowTable>(table: T, row: unknown): FieldsOf<T> | string {
  if (!isRecord(row)) return 'an object was expected';
  const fault = checkRow(table, row);
  if (fault !== null) return fault;
  // Members that are null count as absent.
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as FieldsOf<T>;
}

// Writes the three frames that the relay sends most often, once or more for each command, by concatenation. The text
// equals that of `joinFrame`: ids contain no character that JSON escapes.

type HeaderOf<T extends DownFrame['type']> = Extract<DownHeader, { type: T }>;

/**
 * Writes a header line. Ids, names and state words are not escaped: a field of kind `id` must match `ID`, and one of
 * kind `name` must match `NAME`.
 */
export function writeHeader(header: DownHeader): string {
  if (header.type === 'command') return command(header);
  if (header.type === 'result_ack')
    return `{"type":"result_ack","command_id":"${header.command_id}","recorded":"${header.recorded}"}`;
  return header.type === 'outcome' ? outcome(header) : joinFrame(header);
}

function command({ command_id, action, remaining_ms, context_id, ...trace }: HeaderOf<'command'>): string {
  const place = context_id === undefined ? '' : `,"context_id":"${context_id}"`;
  const ids = text('trace_id', trace.trace_id) + text('parent_span_id', trace.parent_span_id);
  const rest = text('trace_flags', trace.trace_flags) + text('trace_state', trace.trace_state);
  const start = `{"type":"command","command_id":"${command_id}","action":"${action}"`;
  return `${start},"remaining_ms":${remaining_ms}${place}${ids}${rest}}`;
}

function outcome({ ref, command_id, rpc_id, stage, execution, ...more }: HeaderOf<'outcome'>): string {
  const rpc = rpc_id === undefined ? '' : `,"rpc_id":"${rpc_id}"`;
  const ended = more.outcome === undefined ? '' : `,"outcome":"${more.outcome}"`;
  const error = text('error_code', more.error_code) + text('error_message', more.error_message);
  const states = `${rpc}${ended},"stage":"${stage}","execution":"${execution}"`;
  return `{"type":"outcome","ref":"${ref}","command_id":"${command_id}"${states}${error}}`;
}

/** Writes `,"name":"value"`, or an empty text when the value is undefined. */
function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}

// Reads the frames that are sent for each command, if they are written as libraries write them: without spaces, and
// with the members in a fixed order. Ids and names contain no character that JSON escapes, so they can be cut out of
// the text. For any other text a reader returns null, and the text is then read as JSON.

const QUOTE = '"';
const BRACE_END = 0x7d;
const NEWLINE = 0x0a;

const REPORT_HEADS = [
  { type: 'result', head: '{"type":"result","command_id":"', takesPayload: true },
  { type: 'ack', head: '{"type":"ack","command_id":"', takesPayload: false },
] as const;

/** Reads `ack` and `result`, the two reports that a client sends for each command. */
function parseReport(text: string): UpFrame | null {
  for (const { type, head, takesPayload } of REPORT_HEADS) {
    if (!text.startsWith(head)) continue;
    const end = text.indexOf(QUOTE, head.length);
    const command_id = text.slice(head.length, end);
    if (end < 0 || !ID.test(command_id)) return null;
    const payload = payloadAfter(text, end);
    return payload === undefined || (payload !== null && !takesPayload) ? null : { type, payload, command_id };
  }
  return null;
}

const INVOKE_HEAD = '{"type":"invoke","ref":"';
/** A user id that JSON writes without an escape. */
const PLAIN_USER = /^[^\\\u0000-\u001f"]{1,128}$/;

/** Reads an `invoke` without time limits, trace or named instance. */
export function parseInvoke(text: string): UpFrame | null {
  if (!text.startsWith(INVOKE_HEAD)) return null;
  const cursor = new Cursor(text, INVOKE_HEAD.length);
  const ref = cursor.value();
  const user_id = cursor.member('","user_id":"');
  const client_id = cursor.member('","client_id":"');
  const command_id = cursor.member('","command_id":"');
  const action = cursor.member('","action":"');
  const wait_for = oneOf(WORDS.waitFor, cursor.member('","wait_for":"'));
  const stages = oneOf(WORDS.stages, cursor.member('","stages":"'));
  const payload = payloadAfter(text, cursor.at);
  if (payload === undefined || client_id === undefined || action === undefined) return null;
  if (!ID.test(ref) || !ID.test(client_id) || !NAME.test(action)) return null;
  if (user_id !== undefined && !PLAIN_USER.test(user_id)) return null;
  if (command_id !== undefined && !ID.test(command_id)) return null;
  if (wait_for === null || stages === null) return null;
  return { type: 'invoke', payload, ref, user_id, client_id, command_id, action, wait_for, stages };
}

/** Reads members whose values are strings, one after another. */
class Cursor {
  readonly #text: string;
  /** The position of the quote that ends the last value; -1 if a value does not end. */
  at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** Returns the value that begins at `at`. */
  value(): string {
    const from = this.at;
    this.at = this.#text.indexOf(QUOTE, from);
    return this.at < 0 ? '' : this.#text.slice(from, this.at);
  }

  /** Returns the value that follows `opening`; undefined if another text follows. */
  member(opening: string): string | undefined {
    if (this.at < 0 || !this.#text.startsWith(opening, this.at)) return undefined;
    this.at += opening.length;
    return this.value();
  }
}

/** Returns the text if it is one of the words; undefined if it is absent; null if it is another text. */
function oneOf<T extends string>(words: readonly T[], text: string | undefined): T | undefined | null {
  return text === undefined ? undefined : (words.find((word) => word === text) ?? null);
}

/** Returns the payload after a header whose last value ends at `end`. Undefined: the header does not end there. */
function payloadAfter(text: string, end: number): string | null | undefined {
  if (end < 0 || text.charCodeAt(end + 1) !== BRACE_END) return undefined;
  if (text.length === end + 2) return null;
  return text.charCodeAt(end + 2) === NEWLINE ? ownSlice(text, end + 3, text.length) : undefined;
}
