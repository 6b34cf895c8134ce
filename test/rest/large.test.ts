/** Tests that REST pages of large rows end early and can be continued. */
import { describe, expect, it } from 'vitest';
import { ANSWER_PAGE_BYTES, METADATA_BYTES } from '../../src/core/limits.ts';
import { toJson } from '../../src/core/json.ts';
import { connect, user } from '../kit/core.ts';
import { startRestRelay } from './kit/rest-server.ts';

const CLIENTS = 400;

describe('GET /connections, with large advertisements', () => {
  it('ends pages early, with a cursor, and shows every row once', async () => {
    await using relay = await startRestRelay();
    const metadata = toJson('m'.repeat(METADATA_BYTES - 10));
    const names = Array.from({ length: CLIENTS }, (_, i) => `c${String(i).padStart(4, '0')}`);
    for (const clientId of names) await connect(relay.core, user('alice'), { clientId, metadata });
    const seen: string[] = [];
    const pages: number[] = [];
    let cursor = '';
    do {
      const { status, text, body } = await relay.ask(`/connections?limit=1000${cursor && `&cursor=${cursor}`}`);
      expect([status, text.length < ANSWER_PAGE_BYTES + 256 * 1024]).toEqual([200, true]);
      expect(body.completeness.complete).toBe(body.next_cursor === null);
      pages.push(body.items.length);
      seen.push(...body.items.map(({ client_id }: { client_id: string }) => client_id));
      cursor = body.next_cursor ?? '';
    } while (cursor !== '');
    expect(seen).toEqual(names);
    expect(pages.length).toBeGreaterThan(1);
    const summary = await relay.ask('/users/alice');
    expect(summary.body.connections.items).toHaveLength(100);
  });
});
