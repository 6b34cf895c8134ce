/** Sends one GraphQL document to the relay under test. It judges nothing. */
import { request, type Agent } from 'node:http';
import type { Answer } from './judge.ts';

/** How long the relay may take to answer, in milliseconds: longer than its own limit for a document. */
const ANSWER_MS = 30_000;

export type DocumentSender = { readonly agent: Agent; readonly token: string; readonly address: string };

/** Sends one POST to /graphql of the relay at `url`. Rejects when the relay does not answer in time. */
export function sendDocument(url: string, body: string, { agent, token, address }: DocumentSender): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = {
    'content-type': 'application/json',
    accept: 'application/graphql-response+json',
    'x-forwarded-for': address,
    'content-length': Buffer.byteLength(body),
    ...(token !== '' && { authorization: `Bearer ${token}` }),
  };
  const sent = request(`${url}/graphql`, { method: 'POST', agent, headers, timeout: ANSWER_MS }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () =>
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
    );
  });
  sent.on('timeout', () => sent.destroy(new Error(`not answered within ${ANSWER_MS} ms`)));
  sent.on('error', reject);
  sent.end(body);
  return promise;
}
