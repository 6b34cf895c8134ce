/**
 * Sends GraphQL operations to the relay with the tab's token, and defines the error of a failed request. Also tracks
 * the visibility of the tab and the time, and finds the exact text of a member in an answer.
 */
import { effect, signal } from '@preact/signals';
import type { CancelCallMutation, TypedDocumentString } from '../../../generated/console.ts';
import { endOfObject, endOfValue } from '../../protocol/json-scan.ts';
import { RELAY_PATH } from '../base.ts';
import { signOutOf, token } from '../session.ts';

/**
 * Sends one operation. Resolves with the data of the answer, and the text from which it was read. Rejects with
 * AbortError when aborted, otherwise with RequestError, even if the answer has data beside its errors. When the relay
 * refuses the token, the tab asks the user for another one.
 */
export async function send<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<{ readonly data: Data; readonly text: string }> {
  const bearer = requireToken();
  const response = await post('/graphql', { query: document.toString(), variables }, { bearer, signal });
  const text = await response.text();
  return { data: readData<Data>(parseObject(text), bearer, response), text };
}

/** Sends one operation, as `send` does, and resolves with the data only. */
export async function request<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<Data> {
  return (await send(document, variables, signal)).data;
}

type Post = { readonly bearer: string; readonly signal?: AbortSignal | undefined };

/** Posts JSON with the token. Rejects with RequestError `unreachable` if there is no answer. */
async function post(path: string, body: object, { bearer, signal }: Post): Promise<Response> {
  try {
    return await fetch(RELAY_PATH + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': 'application/json',
        accept: 'application/graphql-response+json, application/json',
      },
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const reason = error instanceof Error ? error.message : 'unknown reason';
    throw new RequestError('unreachable', `The relay does not answer (${reason}).`);
  }
}

export function requireToken(): string {
  if (token.value === null) throw new RequestError('unauthenticated', 'Sign in to go on.');
  return token.value;
}

/** The members of the JSON object that an answer is. */
export type AnswerBody = Readonly<Record<string, unknown>>;

type Head = Pick<Response, 'status' | 'headers'>;

/**
 * Returns the error for the body of a refused request; null if it is no refusal. Asks the user for another token if the
 * relay refused the token.
 */
export function refusalOf(body: AnswerBody, bearer: string, { status, headers }: Head): RequestError | null {
  const { code, message } = readRefusal(body, status);
  if (code === null) return null;
  if (code === 'unauthenticated') signOutOf(bearer, 'expired', message);
  const seconds = Number(headers.get('retry-after') ?? NaN);
  return new RequestError(code, message, Number.isFinite(seconds) ? seconds * 1000 : null);
}

/** Returns the data of an answer or of an event of a stream. Throws RequestError for a refusal. */
export function readData<Data>(body: AnswerBody, bearer: string, head: Head): Data {
  const refusal = refusalOf(body, bearer, head);
  if (refusal) throw refusal;
  const { data } = body;
  if (!isData<Data>(data)) throw new RequestError('bad_answer', `HTTP ${head.status} without a relay's answer.`);
  return data;
}

/** Whether the data is an object. Its members are not checked, because the relay validated the document. */
function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

/**
 * Returns the code and message of the first GraphQL error, or of the problem document of a request that was refused
 * before GraphQL. The code is null if the body is no refusal.
 */
function readRefusal(body: AnswerBody, status: number): { readonly code: string | null; readonly message: string } {
  const first: unknown = Array.isArray(body['errors']) ? body['errors'][0] : undefined;
  const error = membersOf(first);
  const code = membersOf(error['extensions'])['code'] ?? body['code'];
  const message = error['message'] ?? body['detail'];
  if (first === undefined && body['code'] === undefined && status < 400) return { code: null, message: '' };
  return {
    code: typeof code === 'string' ? code : 'bad_answer',
    message: typeof message === 'string' ? message : `HTTP ${status} without a relay's answer.`,
  };
}

/** Returns the members of a JSON object; none for any other text. */
export function parseObject(text: string): AnswerBody {
  try {
    return membersOf(JSON.parse(text));
  } catch {
    return {};
  }
}

function membersOf(value: unknown): AnswerBody {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/**
 * The error of a failed request. `code` is a code of the relay, `unreachable` (no answer arrived), `bad_answer` (the
 * answer is not from a relay), or `internal` (an unexpected failure).
 */
export class RequestError extends Error {
  readonly code: string;
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Returns any failure as a RequestError. An unexpected failure has the code `internal`. */
export function errorOf(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError('internal', String(error));
}

type Answer = { readonly __typename: string };
type Refusal = Extract<CancelCallMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

/** Returns the answer of a mutation. Throws a RequestError if the relay refused it. */
export function accepted<Done extends Answer>(answer: Done | Refusal): Done {
  if (!isRefusal(answer)) return answer;
  throw new RequestError(answer.code, answer.message);
}

function isRefusal(answer: Answer): answer is Refusal {
  return answer.__typename === 'Refusal';
}

// Tracks whether the tab is visible, and the current time while it is.

export const visible = signal(!document.hidden);
document.addEventListener('visibilitychange', () => (visible.value = !document.hidden));

/** The current time in epoch milliseconds, updated each second. It is not updated while the tab is hidden. */
export const now = signal(Date.now());

effect(() => {
  if (!visible.value) return undefined;
  now.value = Date.now();
  const timer = setInterval(() => (now.value = Date.now()), 1000);
  return () => clearInterval(timer);
});

// Finds the text of one member in a JSON text, so that a payload is shown exactly as it was received.

/** Returns the text of the member at this path of names; null if there is none. `text` is a JSON object. */
export function textAt(text: string, path: readonly string[]): string | null {
  let start = text.search(/\S/);
  for (const name of path) {
    const at = valueOf(text, start, name);
    if (at === null) return null;
    start = at;
  }
  const end = endOfValue(text, start, 0);
  return end < 0 ? null : text.slice(start, end);
}

/**
 * Returns the index where the value of this member begins in the object at `start`; null if there is no such member.
 */
function valueOf(text: string, start: number, name: string): number | null {
  if (text[start] !== '{') return null;
  const wanted = JSON.stringify(name);
  let found: number | null = null;
  endOfObject(text, start, 0, (nameStart, nameEnd, from) => {
    if (text.slice(nameStart, nameEnd) === wanted) found = from;
    return endOfValue(text, from, 0);
  });
  return found;
}
