/** Sends GraphQL operations to the relay with the tab's token, and defines the error of a failed request. */
import { signal } from '@preact/signals';
import type { CancelCallMutation, TypedDocumentString } from '../../../generated/console.ts';
import { RELAY_PATH } from '../base.ts';
import { signOutOf, token } from '../session.ts';

/**
 * Sends one operation. Resolves with the data of the answer and the answer's original text. Rejects with AbortError
 * when aborted, and otherwise with RequestError, even if the answer has data in addition to its errors. If the relay
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

/** Like `send`, but resolves only with the data. */
export async function request<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<Data> {
  return (await send(document, variables, signal)).data;
}

/** The time since which the relay has answered no request, in epoch milliseconds; null if it answers. */
export const silentSince = signal<number | null>(null);

type Post = { readonly bearer: string; readonly signal?: AbortSignal | undefined };

/** Posts JSON with the token. Rejects with RequestError `unreachable` if there is no answer. */
async function post(path: string, body: object, { bearer, signal }: Post): Promise<Response> {
  try {
    const response = await fetch(RELAY_PATH + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': 'application/json',
        accept: 'application/graphql-response+json, application/json',
      },
      body: exactText(body),
      signal: signal ?? null,
    });
    silentSince.value = null;
    return response;
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    silentSince.value ??= Date.now();
    const reason = error instanceof Error ? error.message : 'unknown reason';
    throw new RequestError('unreachable', `The relay does not answer (${reason}).`);
  }
}

/**
 * A JSON text that stands for a value in a request. It is sent unchanged, so its digits and the order of its members
 * are preserved.
 */
class ExactJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns a value that is sent as this JSON text. */
export const exactJson = (text: string): unknown => new ExactJson(text);

/** Returns a body as JSON text, in which each ExactJson is replaced by its own text. */
function exactText(body: object): string {
  const texts = new Map<string, string>();
  const marked = JSON.stringify(body, (_, value: unknown) => {
    if (!(value instanceof ExactJson)) return value;
    const mark = crypto.getRandomValues(new Uint32Array(4)).join('-');
    texts.set(mark, value.text);
    return mark;
  });
  return [...texts].reduce((text, [mark, exact]) => text.replace(`"${mark}"`, () => exact), marked);
}

export function requireToken(): string {
  if (token.value === null) throw new RequestError('unauthenticated', 'Sign in to go on.');
  return token.value;
}

/** The members of an answer, which is a JSON object. */
type AnswerBody = Readonly<Record<string, unknown>>;

type Head = Pick<Response, 'status' | 'headers'>;

/**
 * Returns the error of a refused request; null if the request was not refused. If the relay refused the token, asks the
 * user for another one.
 */
export function refusalOf(body: AnswerBody, bearer: string, { status, headers }: Head): RequestError | null {
  const { code, message } = readRefusal(body, status);
  if (code === null) return null;
  if (code === 'unauthenticated') signOutOf(bearer, 'expired', message);
  const seconds = Number(headers.get('retry-after') ?? NaN);
  return new RequestError(code, message, Number.isFinite(seconds) ? seconds * 1000 : null);
}

/** Returns the data of an answer or of an event. Throws RequestError for a refusal. */
export function readData<Data>(body: AnswerBody, bearer: string, head: Head): Data {
  const refusal = refusalOf(body, bearer, head);
  if (refusal) throw refusal;
  const { data } = body;
  if (!isData<Data>(data)) throw new RequestError('bad_answer', `HTTP ${head.status} without a relay's answer.`);
  return data;
}

/** Whether the data is an object. Its members need no check, because the relay validated the document. */
function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

/**
 * Returns the code and message of the first error in an answer, or of a problem document. The code is null if there is
 * no error.
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

/** Returns the members of a JSON object; an empty object for any other text. */
export function parseObject(text: string): AnswerBody {
  try {
    return membersOf(JSON.parse(text));
  } catch {
    return {};
  }
}

const membersOf = (value: unknown): AnswerBody =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};

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

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';

/** Converts any failure into a RequestError. An unexpected failure has the code `internal`. */
export const errorOf = (error: unknown): RequestError =>
  error instanceof RequestError ? error : new RequestError('internal', String(error));

/** The codes of errors that may be temporary. */
const PASSING: readonly string[] = ['unreachable', 'bad_answer', 'store_unavailable'];

/** Whether the same request may succeed later. */
export const isPassing = ({ code, retryAfterMs }: RequestError): boolean =>
  PASSING.includes(code) || retryAfterMs !== null;

type Answer = { readonly __typename: string };
type Refusal = Extract<CancelCallMutation['cancelCommand'], { readonly __typename: 'Refusal' }>;

/** Returns the answer of a mutation. Throws a RequestError if the answer is a refusal. */
export function accepted<Done extends Answer>(answer: Done | Refusal): Done {
  if (!isRefusal(answer)) return answer;
  throw new RequestError(answer.code, answer.message);
}

const isRefusal = (answer: Answer): answer is Refusal => answer.__typename === 'Refusal';
