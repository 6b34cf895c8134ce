/** Lists the attacks that hold resources: links, streams, waits, and unread answers. */
import { type DataOwner, reportPlaces, storeCalls, storeStreams } from '../../lib/stored-data.ts';
import { freshToken, HOSTILE } from '../site.ts';
import { type Attack, type AttackContext, flood, held, inLanes, openLink, openRaw, pause, post } from './attack.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const LANES = 4;

/** Returns a report frame with nearly as many contexts as fit into a frame. */
const contexts = (n: number): string => {
  const metadata = 'm'.repeat(15_900);
  const set = Array.from({ length: 60 }, (_, i) => ({
    context_id: `t${(n * 60 + i) % 1_000}`,
    status: 'idle',
    ownership: 'worker',
    metadata,
  }));
  return `{"type":"report"}\n${JSON.stringify({ contexts: { set } })}`;
};

const advertised = JSON.stringify({
  actions: Array.from({ length: 15 }, (_, i) => ({ name: `action${i}`, description: 'd'.repeat(60 * KIB) })),
});

/** The attacks that hold memory, sockets or links for as long as possible. */
export const HOLDING: readonly Attack[] = [
  {
    name: 'unfinished-headers',
    says: 'sockets whose request never ends, and which never close',
    descriptors: 1_024,
    async run(context) {
      const { site, signal, count } = context;
      for (let n = 0; n < 3_000 && !signal.aborted; n++) {
        await openRaw(site, n, 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ').then(
          () => count('sockets'),
          () => count('sockets refused'),
        );
        if (n % 20 === 19) await pause(20);
      }
      await held(context);
    },
  },
  {
    name: 'unread-answers',
    says: 'answers of 2 MB to sockets that do not read',
    async run(context) {
      const { site, count } = context;
      const token = await freshToken(HOSTILE);
      const message = {
        client_id: 'pusher',
        instance_id: 'i',
        kind: 'event',
        stream_suffix: 'large',
        payload: 'p'.repeat(100 * KIB),
      };
      for (let n = 0; n < 12; n++) {
        const status = await post(site, 0, {
          path: '/ingest',
          body: JSON.stringify(Array.from({ length: 9 }, () => message)),
          token,
        });
        if (status === 200) count('rows', 9);
      }
      const body = JSON.stringify({
        query: '{ messages(stream: "hostile/large", first: 1000) { nodes { payload(include: true) } } }',
      });
      const graphql = `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nAuthorization: Bearer ${token}\r\n\r\n${body}`;
      await inLanes(context, LANES, async (n) => {
        if (n > 600) return pause(100);
        await openRaw(site, n, graphql);
        count('sockets');
        await pause(30);
      });
    },
  },
  {
    name: 'many-contexts',
    says: 'links that each report 1000 contexts of 16 KiB',
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        const socket = await openLink(context.site, n, { clientId: `reporter-${n}` });
        context.count('links');
        for (let i = 0; i < 17 && socket.readyState === socket.OPEN; i++) {
          socket.send(contexts(i));
          context.count('reports');
          await pause(5);
        }
      }),
  },
  {
    name: 'parked-params',
    says: 'commands with 1 MB of params for a client that never connects',
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        const params = { n, filler: 'p'.repeat(MIB - 2_000) };
        const body = JSON.stringify({ params, wait_for: 'admitted', connect_within_ms: 300_000 });
        const status = await post(context.site, n, {
          path: `/connections/hostile/absent-${n % 20}/actions/echo`,
          body,
        });
        context.count(status < 300 ? 'commands parked' : 'commands refused');
      }),
  },
  {
    name: 'many-links',
    says: 'as many links as possible with one token',
    async run(context) {
      const token = await freshToken(HOSTILE);
      await inLanes(context, 32, async (n) => {
        if (n > 6_000) return pause(100);
        await openLink(context.site, n, { token });
        context.count('links');
      });
    },
  },
  {
    name: 'large-advertisements',
    says: 'clients that each advertise 900 KB, while an operator lists them',
    run: (context) =>
      inLanes(context, 2, async (n) => {
        await openLink(context.site, n, { clientId: `boaster-${n}`, payload: advertised });
        context.count('links');
        await pause(20);
      }),
  },
  {
    name: 'changing-advertisements',
    says: 'advertisements of 900 KB, replaced again and again',
    run: async (context) => {
      const frames = (): string => `{"type":"actions"}\n${advertised}`;
      await Promise.all([0, 1].map((lane) => flood(context, { lane, frames })));
    },
  },
];

// Lists the attacks with tokens and identities.

/** The attacks that could make the relay confuse other users with the attacker. */
export const TOKENS: readonly Attack[] = [
  {
    name: 'bad-tokens',
    says: 'bad tokens over HTTP and links, from the same address as the honest user and the operator',
    async run(context) {
      const { site, count } = context;
      const good = await freshToken('hostile');
      const bad = (n: number): string =>
        n % 2 === 0 ? `wrong-${n}` : `${good.slice(0, -6)}${String(n).padStart(6, 'A')}`;
      const overHttp = inLanes(context, 2, async (n) => {
        const status = await post(site, n, { path: '/graphql', body: '{"query":"{ __typename }"}', token: bad(n) });
        count(`answers ${status}`);
        await pause(10);
      });
      const overLinks = inLanes(context, 2, async (n) => {
        await openLink(site, n, { token: bad(n) }).catch(() => count('links refused'));
        await pause(10);
      });
      await Promise.all([overHttp, overLinks]);
    },
  },
];

// Lists the attacks that read much of what the hostile user has stored: nested lists, counts and filtered scans.

const CLIENTS = 10;
/** After this many milliseconds a reader gives up its request and sends the next. */
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

/** Connects clients that each report as many windows and contexts as a client may. */
async function storePlaces(attack: AttackContext): Promise<void> {
  await reportPlaces(ownerOf(attack), CLIENTS);
}

/** Stores streams of events, and commands that ended. */
async function storeRows(attack: AttackContext): Promise<void> {
  await storeStreams(ownerOf(attack), { streams: STREAMS, rows: ROWS_OF_STREAM });
  await storeCalls(ownerOf(attack), CALLS);
}

type Reads = { readonly lanes: number; readonly documents: readonly string[]; readonly withinMs?: number };

/** Sends these documents in this many lanes, one after the other, until the attack is over. */
function read(attack: AttackContext, { lanes, documents, withinMs }: Reads): Promise<void> {
  return inLanes(attack, lanes, async (n) => {
    const body = JSON.stringify({ query: documents[n % documents.length] });
    const sent = post(attack.site, n, { path: '/graphql', body, ...(withinMs !== undefined && { withinMs }) });
    const status = await sent.catch(() => null);
    // GraphQL answers many refusals with 200, so these counts include them.
    attack.count(status === null ? 'reads given up' : status < 400 ? 'reads' : `reads refused with ${status}`);
    // A refusal comes at once. Without a pause the lanes would measure the cost of refusals alone.
    if (status !== null && status >= 400) await pause(20);
  });
}

/** The attacks by reads whose cost grows with what their user has stored. */
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

// Lists the attacks that make a relay compute: expensive documents, filters, schemas and payloads.

/** A filter of 39 KB with unknown members. The cost of reporting them grows with their number. */
const wideFilter = JSON.stringify({
  query: 'query ($f: PendingRpcFilter) { pendingRpcCount(filter: $f) { count } }',
  variables: { f: Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`k${i}`, i])) },
});

const quadraticId = (n: number): string =>
  JSON.stringify({
    query: 'query ($id: ID!) { user(userId: $id) { id } }',
    variables: { id: n % 2 === 0 ? `a@${'.'.repeat(64_000)}@` : '\u0301\u0327'.repeat(32_000) },
  });

/** A document of 12 KB that is costly to parse and to validate. */
const longDocument = JSON.stringify({
  query: `{ ${Array.from({ length: 300 }, (_, i) => `a${i}: users { nodes { id } }`).join(' ')} }`,
});

const manyKeys = `{${Array.from({ length: 100_000 }, (_, i) => `"${i}":0`).join(',')}}`;

/** The attacks that cost computing time. */
export const COMPUTING: readonly Attack[] = [
  {
    name: 'wide-variables',
    says: 'an input object with 3000 members that its type does not have',
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        await post(context.site, n, { path: '/graphql', body: wideFilter });
        context.count('requests');
      }),
  },
  {
    name: 'quadratic-ids',
    says: 'ids of 64 KB that are expensive to match or to normalise',
    run: (context) =>
      inLanes(context, LANES, async (n) => {
        await post(context.site, n, { path: '/graphql', body: quadraticId(n) });
        context.count('requests');
      }),
  },
  {
    name: 'unauthenticated-documents',
    says: 'documents of 12 KB without a token, from 20 senders',
    run: (context) =>
      inLanes(context, 20, async (n) => {
        await post(context.site, n, { path: '/graphql', body: longDocument, token: null });
        context.count('requests');
      }),
  },
  {
    name: 'many-keys',
    says: 'params, results and bodies with 100,000 distinct keys, over links and HTTP',
    async run(context) {
      const path = '/connections/hostile/nothing/actions/echo';
      const overHttp = inLanes(context, 2, async (n) => {
        await post(context.site, n, { path, body: `{"params":${manyKeys}}` });
        context.count('requests');
      });
      const frames = (i: number): string =>
        `{"type":"invoke","ref":"r${i}","client_id":"nothing","action":"echo"}\n${manyKeys}`;
      await Promise.all([overHttp, flood(context, { lane: 0, frames }), flood(context, { lane: 1, frames })]);
    },
  },
];
