/** Lists the attacks that read much of what the hostile user has stored: nested lists, counts and filtered scans. */
import { createLinkCaller } from '../../../src/clients/caller/index.ts';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { freshToken, HOSTILE, linkUrl } from '../site.ts';
import { inLanes, pause, type Attack, type AttackContext } from './attack.ts';
import { openLink } from './links.ts';
import { post } from './requests.ts';

const CLIENTS = 10;
/** The contexts and windows that one client may report at most. */
const CONTEXTS = 1_000;
const WINDOWS = 100;
/** The size of the metadata of one context, in bytes: ten clients then hold 10 of the 16 MiB of their user's share. */
const METADATA_BYTES = 900;
/** The number of contexts in one report, so that the report fits into a frame. */
const CONTEXTS_OF_REPORT = 250;
/** After this many milliseconds a reader gives up its request and sends the next. */
const GIVEN_UP_MS = 200;
const STREAMS = 10;
const ROWS_OF_STREAM = 10_000;
/** The number of messages in one request to /ingest. */
const MESSAGES = 100;
const CALLS = 20_000;

const nested = (first: number): string =>
  `{browserWindows(first:${first}){nodes{contexts(first:1){nodes{contextId}}}}}`;
const counts = `{${Array.from({ length: 10 }, (_, i) => `a${i}:contextCount{count}`).join(' ')}}`;
const absentKind = `{${Array.from(
  { length: STREAMS },
  (_, i) => `a${i}:messages(stream:"${HOSTILE}/scan${i}",kinds:[PROGRESS],first:1000){nodes{messageId}}`,
).join(' ')}}`;
const absentCode = '{delivery{commands(filter:{code:"absent"},first:1000){nodes{commandId}}}}';

const body = (query: string): string => JSON.stringify({ query });

const window = (i: number): object => ({
  ...{ window_id: `w${i}`, ownership: 'worker', focused: false, type: 'normal', state: 'normal' },
  ...{ incognito: false, tab_count: 10, draining: false, status: 'open' },
});
const context = (i: number): object => ({
  ...{ context_id: `t${i}`, status: 'idle', ownership: 'worker', window_id: `w${i % WINDOWS}` },
  metadata: 'm'.repeat(METADATA_BYTES),
});
const many = (from: number, count: number, row: (i: number) => object): object => ({
  set: Array.from({ length: count }, (_, i) => row(from + i)),
});

/** Connects clients that each report as many windows and contexts as a client may. */
async function reportPlaces({ site, count }: AttackContext): Promise<void> {
  for (let n = 0; n < CLIENTS; n++) {
    const socket = await openLink(site, n, { clientId: `browser-${n}`, clientType: 'browser' });
    socket.send(`{"type":"report"}\n${JSON.stringify({ windows: many(0, WINDOWS, window) })}`);
    for (let from = 0; from < CONTEXTS; from += CONTEXTS_OF_REPORT) {
      socket.send(`{"type":"report"}\n${JSON.stringify({ contexts: many(from, CONTEXTS_OF_REPORT, context) })}`);
      count('contexts reported', CONTEXTS_OF_REPORT);
      await pause(20);
    }
  }
}

/** Stores streams of events, and commands that ended. */
async function storeRows(attack: AttackContext): Promise<void> {
  const { site, count } = attack;
  for (let n = 0; n < (STREAMS * ROWS_OF_STREAM) / MESSAGES; n++) {
    const message = { client_id: 'pusher', instance_id: 'i', kind: 'event', stream_suffix: `scan${n % STREAMS}` };
    const messages = Array.from({ length: MESSAGES }, () => ({ ...message, payload: n }));
    const status = await post(site, n, { path: '/ingest', body: JSON.stringify(messages) });
    count(status === 200 ? 'rows stored' : 'rows refused', MESSAGES);
  }
  await storeCalls(attack);
}

async function storeCalls({ site, count }: AttackContext): Promise<void> {
  const token = (): Promise<string> => freshToken(HOSTILE);
  const runtime = createRuntime({ url: linkUrl(site, 0), token, clientId: 'giver', clientType: 'console' });
  runtime.handle('give', {}, () => null);
  runtime.connect();
  const caller = createLinkCaller({ url: linkUrl(site, 0), token });
  const target = { userId: HOSTILE, clientId: 'giver', action: 'give' };
  let left = CALLS;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      await caller.invoke(target, {}, { connectWithinMs: 5_000 });
      count('calls stored');
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
}

/** Sends these documents in this many lanes, one after the other, until the attack is over. */
function read(
  attack: AttackContext,
  { lanes, documents, withinMs }: { readonly lanes: number; readonly documents: readonly string[]; withinMs?: number },
): Promise<void> {
  return inLanes(attack, lanes, async (n) => {
    const query = documents[n % documents.length] ?? '';
    const token = await freshToken(HOSTILE);
    const sent = post(attack.site, n, { path: '/graphql', body: body(query), token, ...(withinMs && { withinMs }) });
    const status = await sent.catch(() => 'given up');
    attack.count(`reads: ${status}`);
    // A refusal comes at once. Its sender waits like a client that has read "retry later", and stays impatient.
    if (status === 429) await pause(20);
  });
}

/** The attacks by reads whose cost grows with what their user has stored. */
export const READING: readonly Attack[] = [
  {
    name: 'nested-reads',
    says: 'lists nested in lists over 10,000 contexts, each given up after 200 ms and sent again',
    prepare: reportPlaces,
    run: (attack) => read(attack, { lanes: 6, documents: [nested(1_000), nested(100), counts], withinMs: GIVEN_UP_MS }),
  },
  {
    name: 'reads-in-parallel',
    says: 'the same lists, 8 requests in progress',
    prepare: reportPlaces,
    run: (attack) => read(attack, { lanes: 8, documents: [nested(1_000)] }),
  },
  {
    name: 'reads-in-parallel-32',
    says: 'the same lists, 32 requests in progress',
    prepare: reportPlaces,
    run: (attack) => read(attack, { lanes: 32, documents: [nested(1_000)] }),
  },
  {
    name: 'filtered-scans',
    says: 'ten streams of 10,000 rows filtered by an absent kind, and 20,000 commands by an absent code',
    prepare: storeRows,
    run: (attack) => read(attack, { lanes: 4, documents: [absentKind, absentCode] }),
  },
];
