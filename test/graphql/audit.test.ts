import { auditServer } from 'graphql-http';
import { describe, expect, it } from 'vitest';
import { openDoor } from './kit/door.ts';

describe('the audit of GraphQL over HTTP', () => {
  it('finds nothing to say of the running server', async () => {
    await using door = await openDoor();
    const fetchFn = (url: string, init: RequestInit = {}): Promise<Response> => {
      const headers = new Headers(init.headers);
      headers.set('authorization', 'Bearer admin');
      return fetch(url, { ...init, headers });
    };
    const results = await auditServer({ url: door.url, fetchFn });
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(results).toHaveLength(61);
  });
});
