/** The frames of PROTOCOL.md, name by name: what a client or caller sends (`UP`), what the relay sends (`DOWN`). */
import { faultIn, ID, membersOf, type Fields, type Member, type Table } from './fields.ts';
import { faultOf, splitFrame, type FrameFault, type RawFrame } from './frame.ts';

/** Client or caller to relay. A payload is allowed where PAYLOAD says so, and then it is the frame's second part. */
export const UP = {
  /** First frame of a link. With `client_id`, a client (then `instance_id` and `client_type` are required); without, a caller. Payload: `{ metadata?, actions? }`. */
  hello: { token: 'token', client_id: 'id?', instance_id: 'id?', client_type: 'clientType?' },
  /** A renewed token of the same user. Answered by `renewed`, or by `refused` (the link then lives on until its old token ends). */
  auth: { token: 'token' },
  /** The command was received and will be handled. */
  ack: { command_id: 'id' },
  /** Payload: anything. */
  progress: { command_id: 'id' },
  /** The handler returned. Payload: the result (left out: null). */
  result: { command_id: 'id' },
  /** The handler failed, or the client refused (code of the client's refusals). */
  error: { command_id: 'id', code: 'prose', message: 'prose?' },
  /** The client stopped the command because it was asked to. Payload: a partial result, if any. */
  cancelled: { command_id: 'id' },
  /** Changed advertisements, all of them. Payload: `{ actions }`. */
  actions: {},
  /** Where execution can happen at this client now. Payload: `{ contexts?, windows? }`, each `{ snapshot?, set?, removed? }`; rows as in report.ts. */
  report: {},
  /** Hosts a cooperative site (`op`: `register`, with its definition as payload) or gives it up (`remove`). Answered by `site_ack` or `refused`. */
  site: { ref: 'id', op: 'siteOp', site_id: 'id' },
  /** The client leaves: dispatch nothing more on this link. Answered by `closed`. */
  closing: {},
  pong: {},
  /** Payload: the params (left out: {}). Answered by `outcome`, after `stage` where asked for, or by `refused`, each with this `ref`. */
  invoke: {
    ref: 'id',
    user_id: 'user?',
    client_id: 'id',
    action: 'name',
    instance_id: 'id?',
    command_id: 'id?',
    wait_for: 'waitFor?',
    /** Which `stage` frames are wanted: the first one, or all. Left out: none. */
    stages: 'stages?',
    connect_within_ms: 'int?',
    respond_within_ms: 'int?',
    trace_id: 'text?',
    parent_span_id: 'text?',
  },
  await: {
    ref: 'id',
    user_id: 'user?',
    client_id: 'id',
    command_id: 'id',
    wait_for: 'waitFor?',
    stages: 'stages?',
    within_ms: 'int?',
  },
  cancel: { ref: 'id', user_id: 'user?', client_id: 'id', command_id: 'id', reason: 'text?' },
  /** The caller stops waiting: ends the wait of this `ref`, never its command. Not answered, also when there is no such wait. */
  leave: { ref: 'id' },
} as const satisfies Record<string, Table>;

/** Relay to client or caller. */
export const DOWN = {
  /**
   * The link is open. `epoch` is a number that grows with each connection of the client (by one or more); `resumed` says that the same instance
   * came back. Times are milliseconds, `token_expires_at` epoch milliseconds. `client_id` is left out for a caller alone.
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
    in_flight: 'int',
    idempotency_window_ms: 'int?',
    token_expires_at: 'int?',
  },
  /** The new token of `auth` is in force. */
  renewed: { token_expires_at: 'int?' },
  /** Run this. Payload: the params. `remaining_ms` is what is left until the deadline by the relay's clock. */
  command: {
    command_id: 'id',
    action: 'name',
    remaining_ms: 'int',
    trace_id: 'text?',
    parent_span_id: 'text?',
  },
  /** To a client: stop this command. */
  cancel: { command_id: 'id', reason: 'text?' },
  /** The end of this command that the client reported was taken: the client may forget it. `recorded`: one of RECORDED. */
  result_ack: { command_id: 'id', recorded: 'text' },
  /** To a client: its `site` of this `ref` was done. */
  site_ack: { ref: 'id' },
  /** To a caller: how far its command has come. */
  stage: { ref: 'id', command_id: 'id', stage: 'text' },
  /** To a caller: its wait is over. Without `outcome`, the command still lives. Payload: the result. */
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
  /** To a caller: what became of its cancel. */
  receipt: { ref: 'id', command_id: 'id', state: 'text' },
  /** A frame was refused: which (`frame`, and its `ref` or `command_id`), and why. The link stays up unless `bye` follows. */
  refused: {
    code: 'text',
    message: 'text',
    frame: 'text?',
    ref: 'id?',
    command_id: 'id?',
    retry_after_ms: 'int?',
    by: 'text?',
    /** Which share is used up, where the code is `share_exceeded` or `store_full`. */
    share: 'text?',
  },
  /** To a client: its `closing` was done, and no further command is written to this link. Payload: `{ commands }`, the ids of those that have not ended. */
  closed: {},
  /** Another instance of this client took over. */
  replaced: { instance_id: 'id' },
  ping: {},
  /** Last frame before the relay closes: the close code, whether to come back, and after how long. */
  bye: { code: 'int', reason: 'text', reconnect: 'bool', after_ms: 'int?' },
} as const satisfies Record<string, Table>;

/**
 * What became of a reported end. `recorded`: it ended the command. `duplicate`: known already. `late`: the command had ended otherwise,
 * `fenced`: it is bound to another instance; both kept as evidence only. `unknown`: there is no such command.
 */
export const RECORDED = ['recorded', 'duplicate', 'late', 'fenced', 'unknown'] as const;
export type Recorded = (typeof RECORDED)[number];

/** Frames whose second part is read; on any other, a payload is a fault. */
const WITH_PAYLOAD = new Set([
  'hello',
  'progress',
  'result',
  'cancelled',
  'actions',
  'report',
  'site',
  'invoke',
  'command',
  'closed',
  'outcome',
]);

const UP_FORMS = formsOf(UP);
const DOWN_FORMS = formsOf(DOWN);

export type UpType = keyof typeof UP;
export type DownType = keyof typeof DOWN;
type FrameOf<T extends Record<string, Table>> = {
  [K in keyof T & string]: { readonly type: K; readonly payload: string | null } & Fields<T[K]>;
}[keyof T & string];

export type UpFrame = FrameOf<typeof UP>;
export type DownFrame = FrameOf<typeof DOWN>;
/** A header to send: a frame without its payload. */
export type UpHeader = { [K in UpType]: { readonly type: K } & Fields<(typeof UP)[K]> }[UpType];
export type DownHeader = { [K in DownType]: { readonly type: K } & Fields<(typeof DOWN)[K]> }[DownType];

/** Total. The payload is not looked into: whoever uses it checks that it is JSON. */
export function parseUp(text: string): UpFrame | FrameFault {
  return (parseReport(text) ?? parse(UP_FORMS, text)) as UpFrame | FrameFault;
}

/** Total. */
export function parseDown(text: string): DownFrame | FrameFault {
  return parse(DOWN_FORMS, text) as DownFrame | FrameFault;
}

export function isFault(frame: UpFrame | DownFrame | FrameFault): frame is FrameFault {
  return 'fault' in frame;
}

const REPORT_HEADS = [
  { type: 'ack', head: '{"type":"ack","command_id":"', takesPayload: false },
  { type: 'result', head: '{"type":"result","command_id":"', takesPayload: true },
] as const;

/**
 * The two frames that come for each command, where they are written without a space and nothing more is said: an id holds nothing that JSON
 * escapes, so such a header says just what it shows. Null: any other text, which is read as JSON.
 */
function parseReport(text: string): Extract<UpFrame, { type: 'ack' | 'result' }> | null {
  for (const { type, head, takesPayload } of REPORT_HEADS) {
    if (!text.startsWith(head)) continue;
    const end = text.indexOf('"', head.length);
    const command_id = text.slice(head.length, end);
    if (end < 0 || text.charCodeAt(end + 1) !== BRACE_END || !ID.test(command_id)) return null;
    if (text.length === end + 2) return { type, payload: null, command_id };
    if (!takesPayload || text.charCodeAt(end + 2) !== NEWLINE) return null;
    return { type, payload: text.slice(end + 3), command_id };
  }
  return null;
}

const BRACE_END = 0x7d;
const NEWLINE = 0x0a;

type Form = { readonly members: readonly Member[]; readonly takesPayload: boolean };
type Forms = ReadonlyMap<string, Form>;

function formsOf(tables: Readonly<Record<string, Table>>): Forms {
  const form = (type: string, table: Table): Form => ({
    members: membersOf(table),
    takesPayload: WITH_PAYLOAD.has(type),
  });
  return new Map(Object.entries(tables).map(([type, table]) => [type, form(type, table)]));
}

function parse(forms: Forms, text: string): unknown {
  const raw = splitFrame(text);
  if ('fault' in raw) return raw;
  const { header, payload } = raw;
  const { type } = header;
  const form = forms.get(type);
  if (!form) return faultOf(`type: there is no frame ${JSON.stringify(type)}`, type, refOf(header));
  const frame: Record<string, unknown> = { type, payload };
  for (const member of form.members) {
    // No field is called as anything that every object has, so what is read here is the header's own.
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
