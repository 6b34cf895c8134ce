/** Sends the bytes of one HTTP request, valid or not, to the relay under test, and reads the answer. */
import { type Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Answer } from './judge.ts';
import type { RequestInput } from './requests.ts';

/** The timeout for an answer of the relay, in milliseconds. */
const ANSWER_MS = 20_000;
/**
 * The maximum number of bytes of an answer that are kept. A longer answer is not a refusal, so its text is not judged.
 */
const KEPT = 256 * 1024;

type RawAnswers = {
  readonly answers: readonly Answer[];
  /** Whether the relay neither answered nor closed the connection in time. */
  readonly hung: boolean;
};

/** Sends the bytes over a new connection. Resolves when the relay has closed the connection or has begun a stream. */
export function sendRequest(url: string, { bytes, whole, method }: RequestInput): Promise<RawAnswers> {
  const { promise, resolve } = Promise.withResolvers<RawAnswers>();
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let size = 0;
  let hung = false;
  const late = setTimeout(() => {
    hung = true;
    socket.destroy();
  }, ANSWER_MS);
  socket.on('connect', () => (whole ? socket.write(bytes) : socket.end(bytes)));
  socket.on('data', (chunk: Buffer) => {
    if (size < KEPT) chunks.push(chunk);
    if (size === 0 && isStream(chunk)) socket.destroy();
    size += chunk.length;
  });
  socket.on('end', () => socket.destroy());
  // Ignored: a relay that stops reading may reset the connection. The answer is what arrived before.
  socket.on('error', () => {});
  socket.on('close', () => {
    clearTimeout(late);
    const text = Buffer.concat(chunks).toString('utf8');
    resolve({ answers: size > KEPT ? [] : readAnswers(text, method === 'HEAD'), hung });
  });
  return promise;
}

function isStream(chunk: Buffer): boolean {
  const head = chunk.toString('latin1', 0, 2_000).toLowerCase();
  return head.includes('content-type: text/event-stream') || head.startsWith('http/1.1 101');
}

/** Returns the answers of one connection, in order. Answers to HEAD have no body and are not judged. */
function readAnswers(text: string, isHead: boolean): readonly Answer[] {
  const answers: Answer[] = [];
  let rest = text;
  while (rest.startsWith('HTTP/1.1 ')) {
    const cut = rest.indexOf('\r\n\r\n');
    if (cut < 0) break;
    const head = rest.slice(0, cut);
    const status = Number(head.slice(9, 12));
    const { body, length } = readBody(head, rest.slice(cut + 4));
    const hasBody = !isHead && status >= 200 && status !== 204;
    if (hasBody && !isStream(Buffer.from(head))) answers.push({ status, text: body });
    rest = rest.slice(cut + 4 + length);
    if (isHead) break;
  }
  return answers;
}

function readBody(head: string, rest: string): { readonly body: string; readonly length: number } {
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    // The header gives the length in bytes, not in characters.
    const body = Buffer.from(rest).subarray(0, Number(length)).toString('utf8');
    return { body, length: body.length };
  }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { body: '', length: 0 };
  const end = rest.indexOf('\r\n0\r\n\r\n');
  const chunks = rest.slice(0, end < 0 ? undefined : end).replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, '');
  return { body: chunks, length: end < 0 ? rest.length : end + 7 };
}

// Sends one GraphQL document to the relay under test.

/**
 * The timeout for an answer to a document, in milliseconds. It is longer than the relay's own time limit for documents.
 */
const DOCUMENT_ANSWER_MS = 30_000;

type DocumentSender = { readonly agent: Agent; readonly token: string; readonly address: string };

/** Sends one POST to /graphql of the relay at `url`. Rejects if the relay does not answer in time. */
export function sendDocument(url: string, body: string, { agent, token, address }: DocumentSender): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = {
    'content-type': 'application/json',
    accept: 'application/graphql-response+json',
    'x-forwarded-for': address,
    'content-length': Buffer.byteLength(body),
    ...(token !== '' && { authorization: `Bearer ${token}` }),
  };
  const sent = request(
    `${url}/graphql`,
    { method: 'POST', agent, headers, timeout: DOCUMENT_ANSWER_MS },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    },
  );
  sent.on('timeout', () => sent.destroy(new Error(`not answered within ${DOCUMENT_ANSWER_MS} ms`)));
  sent.on('error', reject);
  sent.end(body);
  return promise;
}
