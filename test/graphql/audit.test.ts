/** Runs the audit suite of GraphQL over HTTP (package graphql-http) on the relay's endpoint. */
import { auditServer } from 'graphql-http';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { startGraphqlServer } from './kit/graphql-server.ts';

describe('the audit of GraphQL over HTTP', () => {
  it.each([
    ['the small schema', {}],
    ['the served schema', { schema }],
  ])('finds no fault in a server with %s', async (_name, options) => {
    await using server = await startGraphqlServer(options);
    const fetchFn = (url: string, init: RequestInit = {}): Promise<Response> => {
      const headers = new Headers(init.headers);
      headers.set('authorization', 'Bearer admin');
      return fetch(url, { ...init, headers });
    };
    const results = await auditServer({ url: server.url, fetchFn });
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(results).toHaveLength(61);
  });
});
