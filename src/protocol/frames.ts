/**
 * The tables of the frames in PROTOCOL.md: UP has the frames from clients and callers, and DOWN those from the relay.
 */
import type { DownTable, FieldsOf, Table } from './fields.ts';

/**
 * The frames from clients and callers. Only those in UP_WITH_PAYLOAD may have a payload, which is the text after the
 * header line.
 */
export const UP = {
  /**
   * The first frame of a link. With `client_id` the peer is a client, and `instance_id` and `client_type` are required.
   * Without it the peer is a caller. `places`: whether the client supports commands that name a context.
   * `link_attempt`: the number of this connection attempt, which grows with each attempt of the instance, from 1.
   * Payload: `{ metadata?, actions?, received? }`. `received` and `link_attempt` must both be present or both be
   * absent.
   */
  hello: {
    token: 'token',
    client_id: 'id?',
    instance_id: 'id?',
    client_type: 'clientType?',
    places: 'bool?',
    link_attempt: 'int?',
  },
  /**
   * A new token of the same user. Answer: `renewed` or `refused`. After `refused`, the link lives until its old token
   * expires.
   */
  auth: { token: 'token' },
  /** The client has received the command and will handle it. */
  ack: { command_id: 'id' },
  /**
   * Progress of a running command. Payload: any JSON. `number`: how many progress reports of this command the handler
   * has made so far, including this one and those that the client dropped. A caller sees from the numbers which reports
   * it missed.
   */
  progress: { command_id: 'id', number: 'int?' },
  /** The handler returned. Payload: the result; null if absent. */
  result: { command_id: 'id' },
  /** The handler failed, or the client refused the command. After a refusal, `code` is one of CLIENT_REFUSALS. */
  error: { command_id: 'id', code: 'prose', message: 'prose?' },
  /** The client stopped the command after a `cancel`. Payload: the partial result, if there is one. */
  cancelled: { command_id: 'id' },
  /** Replaces all advertised actions of the client. Payload: `{ actions }`. */
  actions: {},
  /**
   * Reports contexts and windows. Payload: `{ contexts?, windows? }`, each `{ snapshot?, set?, removed? }`. PROTOCOL.md
   * describes the rows.
   */
  report: {},
  /** Registers a cooperative site (payload: its definition), or removes it. Answer: `site_ack` or `refused`. */
  site: { ref: 'id', op: 'siteOp', site_id: 'id' },
  /**
   * Pauses or resumes all calls of the client, because its person wants so. `reason` is required to pause. `queued`:
   * what happens to waiting commands (default `keep`). `running`: what happens to running commands (default `leave`).
   * Answer: `pause_ack` or `refused`.
   */
  pause: { ref: 'id', op: 'pauseOp', reason: 'text?', queued: 'pauseQueued?', running: 'pauseRunning?' },
  /** The client will close the link. The relay dispatches nothing more on it and answers `closed`. */
  closing: {},
  pong: {},
  /**
   * Invokes an action. Payload: the params; `{}` if absent. The answers have the same `ref`. Either `refused` follows,
   * or the requested `stage` and `progress` frames and then `outcome`.
   */
  invoke: {
    ref: 'id',
    user_id: 'user?',
    client_id: 'id',
    action: 'name',
    instance_id: 'id?',
    /** The context of the client in which the command must run. If absent, it may run in any. */
    context_id: 'id?',
    command_id: 'id?',
    wait_for: 'waitFor?',
    /** Which `stage` frames the caller wants: the first one or all. None if absent. */
    stages: 'stages?',
    /** Whether the caller wants `progress` frames. */
    progress: 'bool?',
    connect_within_ms: 'int?',
    respond_within_ms: 'int?',
    trace_id: 'text?',
    parent_span_id: 'text?',
    /** The trace flags of W3C Trace Context, as two hexadecimal digits. */
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
  /** Ends the caller's wait with this `ref`, but not the command. There is no answer, even if there is no such wait. */
  leave: { ref: 'id' },
} as const satisfies Record<string, Table>;

/** The frames from the relay on every link. */
export const DOWN_TO_ALL = {
  /**
   * The link is open. `epoch`: a number that grows with each connection of the client. `resumed`: whether the same
   * instance has connected again. Members with the suffix `_ms` are durations in milliseconds, and `token_expires_at`
   * is in epoch milliseconds. `client_id`: absent for a caller. `home`: the address of the relay that owns the user's
   * data, if it is another one.
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
    /** The most frames that the peer may put into one message; 1 if absent. */
    frames_per_message: 'int?',
    /** The deepest nesting of objects and arrays in any payload. */
    max_depth: 'int?',
    in_flight: 'int',
    idempotency_window_ms: 'int?',
    token_expires_at: 'int?',
    /** Always 0: the start of the clock that `ping` describes. */
    at_ms: 'int?',
    home: 'text?',
    /** The members of the frame `paused`. */
    ...{ paused_by: 'text?', paused_reason: 'text?', paused_until: 'int?' },
  },
  /** From now on, the relay at this address owns the user's data. If `url` is absent, no other relay does. */
  home: { url: 'text?' },
  /** The relay accepted the new token of `auth`. */
  renewed: { token_expires_at: 'int?' },
  /**
   * The relay refused a frame: `frame` is its type, and `ref` or `command_id` identify it. The link stays open unless
   * `bye` follows.
   */
  refused: {
    code: 'text',
    message: 'text',
    frame: 'text?',
    ref: 'id?',
    command_id: 'id?',
    retry_after_ms: 'int?',
    by: 'text?',
    /** The name of the share without room, for the codes `share_exceeded` and `store_full`. */
    share: 'text?',
  },
  /** `at_ms`: the time since the `welcome` of this link, by a monotonic clock of the relay. */
  ping: { at_ms: 'int?' },
  /**
   * The last frame before the relay closes the socket: the close code, whether to reconnect, and the shortest delay
   * before that.
   */
  bye: { code: 'int', reason: 'text', reconnect: 'bool', after_ms: 'int?' },
} as const satisfies Record<string, DownTable>;

/** The frames from the relay to a client only. */
export const DOWN_TO_CLIENT = {
  /**
   * Asks the client to run a command. Payload: the params. `remaining_ms`: the time until the deadline, by the relay's
   * clock. `context_id`: the context in which the client must run the command; if it cannot, it must refuse the
   * command.
   */
  command: {
    command_id: 'id',
    action: 'name',
    remaining_ms: 'int',
    at_ms: 'int?',
    context_id: 'id?',
    trace_id: 'text?',
    parent_span_id: 'text?',
    trace_flags: 'text?',
    trace_state: 'text?',
  },
  /** Asks the client to stop a command. */
  cancel: { command_id: 'id', reason: 'text?' },
  /**
   * The relay has handled the end that the client reported, so the client may forget it. `recorded`: one of RECORDED.
   */
  result_ack: { command_id: 'id', recorded: 'text' },
  /** The relay has carried out the `site` frame with this `ref`. */
  site_ack: { ref: 'id' },
  /**
   * The relay has carried out the `pause` frame with this `ref`: no node writes a covered command to the client any
   * more.
   */
  pause_ack: { ref: 'id' },
  /**
   * The pause that covers all calls of the client has changed. `paused_by`: who set it, as a kind and a name; absent if
   * no pause covers all calls any more. `paused_until`: epoch milliseconds by the relay's clock; absent if the pause
   * lasts until someone resumes.
   */
  paused: { paused_by: 'text?', paused_reason: 'text?', paused_until: 'int?' },
  /**
   * The answer to `closing`: no further command follows. Payload: `{ commands }`, the ids of the commands that have not
   * ended.
   */
  closed: {},
  /** Another instance of this client replaced this one. */
  replaced: { instance_id: 'id' },
} as const satisfies Record<string, DownTable>;

/** The frames from the relay to a caller only. */
export const DOWN_TO_CALLER = {
  /** The caller's command has reached a stage. */
  stage: { ref: 'id', command_id: 'id', stage: 'text' },
  /**
   * Progress of the caller's command, if the caller requested it. Payload: any JSON. `number`: the number that the
   * client gave the report. It grows from frame to frame; a gap means that reports were lost or dropped. Absent if the
   * client does not number its reports.
   */
  progress: { ref: 'id', command_id: 'id', number: 'int?' },
  /** The caller's wait is over. If `outcome` is absent, the command has not ended. Payload: the result. */
  outcome: {
    ref: 'id',
    command_id: 'id',
    rpc_id: 'id?',
    outcome: 'text?',
    stage: 'text',
    last_proven_stage: 'text?',
    execution: 'text',
    error_code: 'text?',
    error_message: 'text?',
  },
  /** The result of the caller's `cancel`. */
  receipt: { ref: 'id', command_id: 'id', state: 'text' },
} as const satisfies Record<string, DownTable>;

// Not a spread, because bundlers would keep a spread in a library that does not use it.
export const DOWN = /* @__PURE__ */ Object.assign({}, DOWN_TO_ALL, DOWN_TO_CLIENT, DOWN_TO_CALLER);

/**
 * What the relay did with the end that a client reported. `recorded`: the command has ended with it. `duplicate`: the
 * relay already had this end. `late`: the command had already ended in another way. `fenced`: the command is bound to
 * another instance. Late and fenced ends are kept as evidence only. `unknown`: there is no such command.
 */
const RECORDED = ['recorded', 'duplicate', 'late', 'fenced', 'unknown'] as const;
export type Recorded = (typeof RECORDED)[number];

/** The frames that may have a payload. On any other frame a payload is a fault. */
export const UP_WITH_PAYLOAD = ['hello', 'progress', 'result', 'cancelled', 'actions', 'report', 'site', 'invoke'];
export const DOWN_WITH_PAYLOAD = ['command', 'closed', 'outcome', 'progress'];

export type UpType = keyof typeof UP;
type DownType = keyof typeof DOWN;
type FrameOf<T extends Record<string, Table>> = {
  [K in keyof T & string]: { readonly type: K; readonly payload: string | null } & FieldsOf<T[K]>;
}[keyof T & string];

export type UpFrame = FrameOf<typeof UP>;
export type DownFrame = FrameOf<typeof DOWN>;
/** The header of a frame to send. */
export type UpHeader = { [K in UpType]: { readonly type: K } & FieldsOf<(typeof UP)[K]> }[UpType];
export type DownHeader = { [K in DownType]: { readonly type: K } & FieldsOf<(typeof DOWN)[K]> }[DownType];

export const SUBPROTOCOL = 'callboard.v1';
