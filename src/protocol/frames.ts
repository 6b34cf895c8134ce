/** The frames of PROTOCOL.md: `UP` has those that clients and callers send, `DOWN` those that the relay sends. */
import type { DownTable, FieldsOf, Table } from './fields.ts';

/** What a client or caller sends. Only frames in UP_WITH_PAYLOAD may have a payload, the text after the header line. */
export const UP = {
  /**
   * First frame of a link. With `client_id` the peer is a client, and `instance_id` and `client_type` are required;
   * without it the peer is a caller. `places`: the client knows places, so a command may name one of its contexts.
   * `link_attempt`: the number of this attempt to connect; it grows with each attempt of the instance, from 1. Payload:
   * `{ metadata?, actions?, received? }`; `received` and `link_attempt` come together or not at all.
   */
  hello: {
    token: 'token',
    client_id: 'id?',
    instance_id: 'id?',
    client_type: 'clientType?',
    places: 'bool?',
    link_attempt: 'int?',
  },
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
  /**
   * The person at the client stops its calls, or lets them go on. `reason` is required for `pause`; `queued` and
   * `running` say what becomes of commands that wait (default `keep`) and that run (default `leave`). Answer:
   * `pause_ack` or `refused`.
   */
  pause: { ref: 'id', op: 'pauseOp', reason: 'text?', queued: 'pauseQueued?', running: 'pauseRunning?' },
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

/** The frames that the relay sends on every link. */
export const DOWN_TO_ALL = {
  /**
   * The link is open. `epoch`: a number that grows by one or more with each connection of the client. `resumed`: the
   * same instance reconnected. Members ending in `_ms` are durations in milliseconds; `token_expires_at` is epoch
   * milliseconds. `client_id` is absent for a caller. `home`: the address of another relay, nearer to the user's data.
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
    /** The most levels of objects and arrays in any payload. */
    max_depth: 'int?',
    in_flight: 'int',
    idempotency_window_ms: 'int?',
    token_expires_at: 'int?',
    /** See `ping`. Always 0. */
    at_ms: 'int?',
    home: 'text?',
    /** As in the frame `paused`. */
    ...{ paused_by: 'text?', paused_reason: 'text?', paused_until: 'int?' },
  },
  /** The address of another relay that is nearer to the user's data from now on. Absent: none is. */
  home: { url: 'text?' },
  /** The relay accepted the new token of `auth`. */
  renewed: { token_expires_at: 'int?' },
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
  /** `at_ms`: the time since `welcome` of this link, by a clock of the relay that is never set. */
  ping: { at_ms: 'int?' },
  /** Last frame before the relay closes the socket: the close code, whether to reconnect, and the minimum delay. */
  bye: { code: 'int', reason: 'text', reconnect: 'bool', after_ms: 'int?' },
} as const satisfies Record<string, DownTable>;

/** The frames that the relay sends to a client only. */
export const DOWN_TO_CLIENT = {
  /**
   * Run this command. Payload: the params. `remaining_ms`: time left until the deadline, by the relay's clock.
   * `context_id`: run it in this context, or refuse it.
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
  /** Stop this command. */
  cancel: { command_id: 'id', reason: 'text?' },
  /** The relay has handled the end that the client reported. The client may forget it. `recorded`: one of RECORDED. */
  result_ack: { command_id: 'id', recorded: 'text' },
  /** The relay carried out the `site` frame with this `ref`. */
  site_ack: { ref: 'id' },
  /** The relay carried out the `pause` frame with this `ref`: no node writes a covered command to the client. */
  pause_ack: { ref: 'id' },
  /**
   * A pause covers all calls of the client from now on, or another one does than before. `paused_by`: who set it, as a
   * kind and a name; absent: no pause covers all of them any more. `paused_until`: epoch milliseconds, by the relay's
   * clock; absent: until somebody resumes.
   */
  paused: { paused_by: 'text?', paused_reason: 'text?', paused_until: 'int?' },
  /** Answers `closing`: no further command follows. Payload: `{ commands }`, the ids of those that have not ended. */
  closed: {},
  /** Another instance of this client replaced this one. */
  replaced: { instance_id: 'id' },
} as const satisfies Record<string, DownTable>;

/** The frames that the relay sends to a caller only. */
export const DOWN_TO_CALLER = {
  /** The stage that its command reached. */
  stage: { ref: 'id', command_id: 'id', stage: 'text' },
  /**
   * Progress of its command, if the caller requested it. Payload: any JSON. `number` is the number that the client
   * gave the report, and grows with each frame; a gap means that reports were lost or dropped on their way. Absent if
   * the client does not number its reports.
   */
  progress: { ref: 'id', command_id: 'id', number: 'int?' },
  /** Its wait is over. Without `outcome`, the command has not ended. Payload: the result. */
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
  /** The result of its `cancel`. */
  receipt: { ref: 'id', command_id: 'id', state: 'text' },
} as const satisfies Record<string, DownTable>;

// A spread would stay in the bundle of a library that does not use it.
export const DOWN = /* @__PURE__ */ Object.assign({}, DOWN_TO_ALL, DOWN_TO_CLIENT, DOWN_TO_CALLER);

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

export const SUBPROTOCOL = 'callboard.v1';
