/** Tests how many files of the sources a request passes through, and that ARCHITECTURE.md names them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { walkAdmission, walkCall, walkEvent, walkQuery, type Walk } from './kit/walks.ts';

/** The most source files on each way. Lower a number when files are joined; raise none without a decision. */
const MOST = { callIn: 12, callOut: 13, query: 9, event: 11, admission: 10, admissionFromCore: 5 };

const page = readFileSync(join(import.meta.dirname, '..', '..', 'ARCHITECTURE.md'), 'utf8');
const unnamed = (walk: Walk): Walk => walk.filter((path) => !page.includes(`\`src/${path}\``));

test('a call passes few files on its way to the client and back', async () => {
  const { inbound, outbound } = await walkCall();
  expect(inbound).toEqual(
    expect.arrayContaining(['http/request-handler.ts', 'core/calls/calls.ts', 'core/commands/dispatcher.ts']),
  );
  expect(outbound).toEqual(
    expect.arrayContaining(['core/commands/link-session.ts', 'core/calls/wait.ts', 'web/reply.ts']),
  );
  expect(inbound.length).toBeLessThanOrEqual(MOST.callIn);
  expect(outbound.length).toBeLessThanOrEqual(MOST.callOut);
  expect(unnamed([...inbound, ...outbound])).toEqual([]);
});

test('a known query passes few files from its request to the response', async () => {
  const walk = await walkQuery();
  expect(walk).toEqual(
    expect.arrayContaining(['http/request-handler.ts', 'core/connections/connections.ts', 'web/reply.ts']),
  );
  expect(walk.length).toBeLessThanOrEqual(MOST.query);
  expect(unnamed(walk)).toEqual([]);
});

test('an event of a site passes few files from its request to the stream of a viewer', async () => {
  const walk = await walkEvent();
  expect(walk).toEqual(expect.arrayContaining(['core/ingest/ingest.ts', 'core/sites/site-events.ts', 'web/sse.ts']));
  expect(walk.length).toBeLessThanOrEqual(MOST.event);
  expect(unnamed(walk)).toEqual([]);
});

// The acts of a turn are sent by the first of them. Once in a while that is an act of a loop, such as a beat.
test('an admission passes few files from the request to the socket of Redis', { retry: 2 }, async () => {
  const walk = await walkAdmission(inject('redisUrl'));
  const fromCore = walk.filter((path) => /^(core|backends)\//.test(path));
  expect(fromCore).toEqual(expect.arrayContaining(['core/calls/calls.ts', 'backends/redis/program-calls.ts']));
  expect(walk.length).toBeLessThanOrEqual(MOST.admission);
  expect(fromCore.length).toBeLessThanOrEqual(MOST.admissionFromCore);
  expect(unnamed(walk)).toEqual([]);
});
