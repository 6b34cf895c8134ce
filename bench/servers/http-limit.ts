/**
 * A server for the limit of the query suite, which does only what node:http must do: it reads the body, chooses the
 * user by a variable, and answers. In the `mode` `buffer`, it sends prepared bytes. In `object`, it serializes each
 * answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { answerOf, SEED, type User } from '../lib/summary.ts';

type QueryBody = { readonly variables: { readonly id: string } };

export async function start(given: unknown): Promise<Started> {
  const { users, mode } = SEED.parse(given);
  const answer = mode === 'buffer' ? prebuilt(users) : written(users);
  const port = await listen((request, response) => {
    body(request, (bytes) => {
      const { variables } = JSON.parse(bytes.toString()) as QueryBody;
      answer(response, variables.id);
    });
  });
  return { port };
}

type Answer = (response: ServerResponse, id: string) => void;

function prebuilt(users: Readonly<Record<string, User>>): Answer {
  const ready = new Map(Object.entries(users).map(([id, user]) => [id, Buffer.from(JSON.stringify(answerOf(user)))]));
  return (response, id) => {
    const bytes = ready.get(id) ?? Buffer.alloc(0);
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': bytes.length });
    response.end(bytes);
  };
}

function written(users: Readonly<Record<string, User>>): Answer {
  return (response, id) => {
    const user = users[id];
    const text = JSON.stringify(user ? answerOf(user) : null);
    const length = Buffer.byteLength(text);
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
    response.end(text);
  };
}

function body(request: IncomingMessage, then: (bytes: Buffer) => void): void {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => then(parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts)));
}
