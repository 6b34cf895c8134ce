/** Publishes events of one cooperative site over HTTP, with the runtime's token. */
import type { IncomingMessage } from 'node:http';
import { isCode, statusOf, type Code } from '../../protocol/codes.ts';
import { RawJson, isRecord, readMembers } from '../../protocol/json.ts';
import { jsonOf, randomId, type Clock } from '../link/platform.ts';
import { requestRelay, textOf, type HttpAnswer } from '../link/relay-request.ts';
import { LinkClosedError } from '../link/socket.ts';
import { SiteRefusedError } from '../runtime/ends.ts';
import { checkId } from '../runtime/runtime.ts';
import type { Runtime, SiteDefinition } from '../runtime/types.ts';

/** The part of the runtime that the publisher needs. The publisher reads it again for each event. */
export type HostRuntime = Pick<Runtime, 'url' | 'clientId' | 'instanceId' | 'status' | 'token'>;

export type PublisherOptions = {
  readonly runtime: HostRuntime;
  readonly siteId: string;
  /** The relay's base address. Defaults to that of the runtime's link. */
  readonly url?: string;
  /** How many times an event is sent again when its connection breaks. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

export type NewSiteEvent = {
  readonly name: string;
  /** The data of the event: any JSON, or `rawJson(text)`. Default null. */
  readonly data?: unknown;
  /**
   * The id of the event's message; generated when absent. The relay retains and publishes events with the same id only
   * once.
   */
  readonly messageId?: string;
};

/**
 * The relay's answer to an event that it has retained. Such an event is not necessarily published: `refusedBy` names
 * the rule that kept it from viewers.
 */
export type PublishReceipt = {
  readonly messageId: string;
  readonly retained: boolean;
  /**
   * Whether a message with this id was retained before. `published` and `refusedBy` then do not repeat the earlier
   * result.
   */
  readonly duplicate: boolean;
  readonly published: boolean;
  /**
   * The rule that kept the event from viewers: `stream`, `owner`, `name` or `allowlist`. Null when the event was
   * published or is a duplicate.
   */
  readonly refusedBy: string | null;
};

export interface SiteEventPublisher {
  /**
   * Publishes one event to the site's viewers, as the runtime's client and with its credentials. When the connection
   * breaks, the event is sent again with the same message id. Rejects with HostError, with the signal's reason, or with
   * TypeError when `data` is not JSON.
   */
  publish(event: NewSiteEvent, options?: { readonly signal?: AbortSignal | undefined }): Promise<PublishReceipt>;
}

/** How long the relay may take to answer, in milliseconds. The request fails only GRACE_MS later. */
const BUDGET_MS = 5_000;

/** Creates a publisher of one site's events. Throws TypeError for an invalid site id. */
export function createSiteEventPublisher({ runtime, siteId, url, ...options }: PublisherOptions): SiteEventPublisher {
  checkId('siteId', siteId);
  const base = url ?? baseOf(runtime.url);
  return {
    async publish({ name, data = null, messageId = randomId('m-') }, { signal } = {}) {
      if (jsonOf(data) === undefined) throw new TypeError('data: JSON expected');
      requireLink(runtime, messageId);
      const { clientId, instanceId } = runtime;
      const body = {
        message_id: messageId,
        kind: 'event',
        stream_suffix: `sites/${siteId}/events`,
        client_id: clientId,
        instance_id: instanceId,
        payload: { name, data },
      };
      const answer = await requestRelay(
        { ...options, url: base, token: () => runtime.token() },
        {
          method: 'POST',
          path: '/ingest',
          body,
          budgetMs: BUDGET_MS,
          signal,
          fault: (code, message, cause) => new HostError(code, message, { messageId, cause }),
        },
      );
      return receiptOf(messageId, answer);
    },
  };
}

/** Returns the relay's base address, derived from the URL of its `/connect`. */
function baseOf(linkUrl: string): string {
  const url = new URL(linkUrl);
  const scheme = url.protocol.replace(/^ws/, 'http');
  return `${scheme}//${url.host}${url.pathname.replace(/\/connect\/?$/, '').replace(/\/+$/, '')}`;
}

/**
 * Throws HostError `runtime_disconnected` if there is no link. Another instance of the client may have replaced the
 * runtime's instance since the link was lost.
 */
export function requireLink({ status }: Pick<HostRuntime, 'status'>, messageId?: string): void {
  if (status.state === 'connected') return;
  const why = 'reason' in status ? ` (${status.reason})` : '';
  const message = `The runtime is not connected to the relay: ${status.state}${why}. Nothing was sent.`;
  throw new HostError('runtime_disconnected', message, messageId === undefined ? {} : { messageId });
}

function receiptOf(messageId: string, { status, body, retryAfterMs }: HttpAnswer): PublishReceipt {
  const code = textOf(body['code']);
  if (status >= 300 && code !== null) {
    throw new HostError(code, textOf(body['detail']) ?? code, { messageId, retryAfterMs });
  }
  const row = firstOf(body['items']);
  const kept = textOf(row?.['message_id']);
  if (status >= 300 || !row || kept === null) {
    throw new HostError('bad_answer', `HTTP ${status} without a relay's answer.`, { messageId });
  }
  return {
    messageId: kept,
    retained: row['retained'] === true,
    duplicate: row['duplicate'] === true,
    published: row['published'] === true,
    refusedBy: textOf(row['refused_by']),
  };
}

function firstOf(items: unknown): Readonly<Record<string, unknown>> | null {
  const first: unknown = Array.isArray(items) ? items[0] : null;
  return typeof first === 'object' && first !== null ? { ...first } : null;
}

// Checks the JSON bodies of the control server's routes, member by member.

type Members = Readonly<Record<string, unknown>>;
type Check = { readonly expected: string; test(value: unknown): boolean };

const TEXT: Check = { expected: 'a string', test: (value) => typeof value === 'string' };
const NAMES: Check = { expected: 'an array of strings', test: isTexts };
const FLAG: Check = { expected: 'true or false', test: (value) => typeof value === 'boolean' };
const OBJECT: Check = { expected: 'an object', test: isRecord };
const ANY: Check = { expected: 'JSON', test: () => true };

const DEFINITION = { title: TEXT, event_names: NAMES, actions: NAMES, capability_profile: OBJECT };
const PROFILE = { action_invocation: FLAG, sharing: FLAG };
const EVENT = { name: TEXT, data: ANY, message_id: TEXT };

/**
 * Reads the definition of a site. Throws ProblemError `invalid_argument`, naming every wrong member. The relay checks
 * the syntax of the names.
 */
export function readDefinition(siteId: string, body: Members): SiteDefinition {
  const wrong = faultsOf(DEFINITION, body);
  const profile = isRecord(body['capability_profile']) ? body['capability_profile'] : {};
  refuse([...wrong, ...faultsOf(PROFILE, profile, 'capability_profile.')]);
  const { title, event_names: eventNames, actions } = body;
  const { action_invocation: actionInvocation, sharing } = profile;
  return {
    siteId,
    title: typeof title === 'string' ? title : null,
    eventNames: isTexts(eventNames) ? eventNames : [],
    actions: isTexts(actions) ? actions : [],
    capabilityProfile: { actionInvocation: actionInvocation === true, sharing: sharing === true },
  };
}

/** Reads an event. Throws ProblemError `invalid_argument`, naming every wrong member. */
export function readEvent(body: Members): NewSiteEvent {
  const { name, data, message_id: messageId } = body;
  const missing = name === undefined || name === null ? [{ parameter: 'name', detail: 'required' }] : [];
  refuse([...missing, ...faultsOf(EVENT, body)]);
  return { name: String(name), data: data ?? null, ...(typeof messageId === 'string' && { messageId }) };
}

/** Returns the faults of the given members. A member that is null counts as absent. */
function faultsOf(checks: Readonly<Record<string, Check>>, members: Members, prefix = ''): readonly Fault[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const parameter = prefix + name;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) return [{ parameter, detail: 'unknown member' }];
    return value === null || check.test(value) ? [] : [{ parameter, detail: `expected ${check.expected}` }];
  });
}

type Fault = { readonly parameter: string; readonly detail: string };

function refuse(errors: readonly Fault[]): void {
  if (errors.length === 0) return;
  const detail = errors.map((fault) => `${fault.parameter}: ${fault.detail}`).join('; ');
  throw new ProblemError('invalid_argument', detail, { errors });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

// Makes the error responses of the control server, as problem documents (RFC 9457).

export type HostResponse = {
  readonly status: number;
  /** The object that is sent as JSON: a problem document or an answer. Absent for an answer without a body. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};
export type Problem = HostResponse & { readonly body: object };

type ProblemDetails = {
  readonly errors?: readonly { readonly parameter: string; readonly detail: string }[];
  readonly messageId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/** An error that is thrown to answer a request with a problem document. */
export class ProblemError extends Error {
  readonly answer: Problem;

  constructor(code: Code, detail: string, details: ProblemDetails = {}) {
    super(detail);
    this.name = 'Refusal';
    this.answer = problem(code, detail, details);
  }
}

/** Creates a problem document (RFC 9457) of the same form as the relay's. */
export function problem(code: Code, detail: string, details: ProblemDetails = {}): Problem {
  const { errors, messageId, retryAfterMs, headers } = details;
  const status = statusOf(code);
  const words = code.replaceAll('_', ' ');
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  const more = { ...(errors && { errors }), ...(messageId != null && { message_id: messageId }) };
  return {
    status,
    body: { type: 'about:blank', title, status, code, detail, ...more },
    headers: {
      ...headers,
      'content-type': 'application/problem+json',
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      ...(retryAfterMs != null && { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
    },
  };
}

/** Returns the problem that the requester receives for an error. Null: the error is a fault of this server. */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof ProblemError) return error.answer;
  if (error instanceof LinkClosedError) return problem('runtime_disconnected', error.message);
  if (error instanceof SiteRefusedError) return ofRelay(error.code, error.message);
  if (!(error instanceof HostError)) return null;
  const { code, message, messageId, retryAfterMs } = error;
  return ofRelay(code, message, { messageId, retryAfterMs });
}

/**
 * Returns the problem for a refusal of the relay, with the relay's code. `unauthenticated` becomes
 * `runtime_disconnected`, because it concerns the runtime's token, not the requester's.
 */
function ofRelay(code: string, message: string, details: ProblemDetails = {}): Problem {
  if (isCode(code) && code !== 'unauthenticated' && statusOf(code) >= 400) return problem(code, message, details);
  return problem('runtime_disconnected', `The relay refused it: ${message}`, details);
}

// The error of a request that did not reach the relay, or that the relay refused. `code` is one of callboard's codes
// (`stale_instance`, `forbidden`, ...), or:  - `runtime_disconnected`: the runtime has no link and sent nothing, or the
// relay did not answer a registration. - `unreachable`: the relay could not be reached, or its answer did not arrive.
// The event may have been retained:   publish it again with the same `messageId`, so that the relay retains it only
// once. - `bad_answer`: the response does not come from a relay.

export class HostError extends Error {
  readonly code: string;
  /** The event that the error concerns; null when it concerns none. */
  readonly messageId: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: HostErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'HostError';
    this.code = code;
    this.messageId = details.messageId ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

export type HostErrorDetails = {
  readonly messageId?: string;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};

// Reads the JSON body of a request to the control server, within a size limit.

const MAX_BODY_BYTES = 1024 * 1024;

/** The members of a body whose original text is sent on unchanged. */
const PASSED_ON: ReadonlySet<string> = new Set(['data']);
/** The most members that the object in a body may have. */
const MAX_MEMBERS = 100;

/**
 * Reads a body as a JSON object; `{}` without a body. The member `data` becomes a RawJson. Checks the headers first.
 * `sendContinue` is called before the body is read. Throws ProblemError and then leaves the rest of the body unread.
 */
export async function readObject(request: IncomingMessage, sendContinue: () => void): Promise<Record<string, unknown>> {
  const { headers } = request;
  const length = Number(headers['content-length'] ?? 0);
  if (length === 0 && headers['transfer-encoding'] === undefined) return {};
  if (length > MAX_BODY_BYTES) throw tooLarge();
  if (!isJson(headers)) throw new ProblemError('unsupported_media_type', 'A body must be application/json in UTF-8.');
  sendContinue();
  return parse(await collect(request));
}

function isJson(headers: IncomingMessage['headers']): boolean {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const utf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === 'application/json' && utf8 && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function collect(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  // `for await` over the request would destroy its socket before the response is sent.
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= MAX_BODY_BYTES) return;
      request.off('data', take);
      request.pause();
      reject(tooLarge());
    };
    request.on('data', take);
    request.once('end', resolve);
    const broken = (): void =>
      reject(new ProblemError('invalid_argument', 'The body ended before its announced length.'));
    request.once('error', broken);
    request.once('close', broken);
  });
  return Buffer.concat(chunks);
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    const members = readMembers(new TextDecoder('utf-8', { fatal: true }).decode(bytes), MAX_MEMBERS);
    if (members !== null && typeof members !== 'string')
      return Object.fromEntries(
        [...members].map(([name, json]) => [name, PASSED_ON.has(name) ? new RawJson(json) : JSON.parse(json)]),
      );
  } catch {
    // Not UTF-8 or not JSON: the ProblemError after this block reports both.
  }
  throw new ProblemError('invalid_argument', 'The body must be a JSON object.');
}

function tooLarge(): ProblemError {
  return new ProblemError('payload_too_large', `A body may have at most ${MAX_BODY_BYTES} bytes.`);
}
