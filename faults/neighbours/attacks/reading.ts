/** Lists the attacks that read much of the hostile user's stored data: nested lists, counts and filtered scans. */
import { type DataOwner, reportPlaces, storeCalls, storeStreams } from '../../lib/stored-data.ts';
import { freshToken, HOSTILE } from '../site.ts';
import { type Attack, type AttackContext, inLanes, pause, post } from './attack.ts';

const CLIENTS = 10;
/** How long a reader waits before it abandons its request and sends the next one, in milliseconds. */
const GIVEN_UP_MS = 200;
const STREAMS = 10;
const ROWS_OF_STREAM = 10_000;
const CALLS = 20_000;

const nested = (first: number): string =>
  `{browserWindows(first:${first}){nodes{contexts(first:1){nodes{contextId}}}}}`;
const counts = `{${Array.from({ length: 10 }, (_, i) => `a${i}:contextCount{count}`).join(' ')}}`;
const absentKind = `{${Array.from(
  { length: STREAMS },
  (_, i) => `a${i}:messages(stream:"${HOSTILE}/scan${i}",kinds:[PROGRESS],first:100){nodes{id}}`,
).join(' ')}}`;
const absentCode = `{delivery{commands(filter:{userId:"${HOSTILE}",code:"absent"},first:100){nodes{commandId}}}}`;

const ownerOf = ({ site, count }: AttackContext): DataOwner => ({
  user: HOSTILE,
  urls: site.urls,
  token: () => freshToken(HOSTILE),
  count,
});

/** Connects clients that each report the maximum number of windows and contexts. */
async function storePlaces(attack: AttackContext): Promise<void> {
  await reportPlaces(ownerOf(attack), CLIENTS);
}

/** Stores streams of events, and commands that ended. */
async function storeRows(attack: AttackContext): Promise<void> {
  await storeStreams(ownerOf(attack), { streams: STREAMS, rows: ROWS_OF_STREAM });
  await storeCalls(ownerOf(attack), CALLS);
}

type Reads = { readonly lanes: number; readonly documents: readonly string[]; readonly withinMs?: number };

/** Sends these documents in this many parallel loops, until the attack is over. */
function read(attack: AttackContext, { lanes, documents, withinMs }: Reads): Promise<void> {
  return inLanes(attack, lanes, async (n) => {
    const body = JSON.stringify({ query: documents[n % documents.length] });
    const sent = post(attack.site, n, { path: '/graphql', body, ...(withinMs !== undefined && { withinMs }) });
    const status = await sent.catch(() => null);
    // These counts include refusals, because GraphQL answers many refusals with 200.
    attack.count(status === null ? 'reads given up' : status < 400 ? 'reads' : `reads refused with ${status}`);
    // A refusal comes at once, so without a pause the loops would only measure the cost of refusals.
    if (status !== null && status >= 400) await pause(20);
  });
}

/** The attacks by reads whose cost grows with the stored data of their user. */
export const READING: readonly Attack[] = [
  {
    name: 'nested-reads',
    says: 'lists nested in lists over 10,000 contexts, each given up after 200 ms and sent again',
    prepare: storePlaces,
    run: (attack) => read(attack, { lanes: 6, documents: [nested(1_000), nested(100), counts], withinMs: GIVEN_UP_MS }),
  },
  {
    name: 'reads-in-parallel',
    says: 'the same lists, 8 requests in progress',
    prepare: storePlaces,
    run: (attack) => read(attack, { lanes: 8, documents: [nested(1_000)] }),
  },
  {
    name: 'reads-in-parallel-32',
    says: 'the same lists, 32 requests in progress',
    prepare: storePlaces,
    run: (attack) => read(attack, { lanes: 32, documents: [nested(1_000)] }),
  },
  {
    name: 'filtered-scans',
    says: 'ten streams of 10,000 rows filtered by an absent kind, and 20,000 commands by an absent code',
    prepare: storeRows,
    run: (attack) => read(attack, { lanes: 4, documents: [absentKind, absentCode] }),
  },
];
