/** Tests how many files of the sources a call passes through. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { walkCall } from './kit/call-walk.ts';

/**
 * The maximum numbers of source files that a call passes: INBOUND on its way to the client, OUTBOUND on its way back.
 * ARCHITECTURE.md (walk 1) names the files.
 */
const INBOUND = 22;
const OUTBOUND = 16;

test('a call passes few files on its way to the client and back, and ARCHITECTURE.md names them', async () => {
  const { inbound, outbound } = await walkCall();
  expect(inbound).toEqual(
    expect.arrayContaining(['http/request-handler.ts', 'core/rpc/invoke.ts', 'core/delivery/dispatcher.ts']),
  );
  expect(outbound).toEqual(
    expect.arrayContaining(['core/delivery/link-session.ts', 'core/rpc/wait.ts', 'web/reply.ts']),
  );
  expect(inbound.length).toBeLessThanOrEqual(INBOUND);
  expect(outbound.length).toBeLessThanOrEqual(OUTBOUND);
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'ARCHITECTURE.md'), 'utf8');
  const unnamed = [...inbound, ...outbound].filter((path) => !page.includes(`\`src/${path}\``));
  expect(unnamed).toEqual([]);
});
