/** Reads subscriptions over each transport that the relay offers. */
import { openRaw, type RawStream } from '../../graphql/kit/stream.ts';
import type { Requester, Query, TestRelay } from './test-relay.ts';

/** The functions that read a subscription, by transport. */
export const MODES = {
  'a connection of its own at /graphql': (at, query, requested) => at.subscribe(query, requested),
  'a connection of its own at /graphql/stream': (at, query, requested) =>
    at.subscribe(query, { ...requested, path: '/graphql/stream' }),
  'a single connection': async (at, query, { requester = 'admin', variables } = {}) => {
    const single = await openSingle(at, requester);
    await single.run('1', query, variables);
    return single.stream;
  },
} as const satisfies Record<string, (at: TestRelay, query: string, requested?: Query) => Promise<RawStream>>;

export type Single = {
  readonly token: string;
  readonly stream: RawStream;
  run(id: string, query: string, variables?: object): Promise<Response>;
};

/** Reserves and opens a stream that carries several operations. */
export async function openSingle(at: TestRelay, requester: Requester): Promise<Single> {
  const authorization = `Bearer ${await at.token(requester)}`;
  const url = `${at.url}/graphql/stream`;
  const token = await (await fetch(url, { method: 'PUT', headers: { authorization } })).text();
  const named = { authorization, 'x-graphql-event-stream-token': token };
  const stream = await openRaw(url, { headers: { ...named, accept: 'text/event-stream' } });
  return {
    token,
    stream,
    run: (operationId, query, variables) =>
      fetch(url, {
        method: 'POST',
        headers: { ...named, 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables, extensions: { operationId } }),
      }),
  };
}
