/** Lists the attacks that cost a relay computing time: expensive documents, filters, schemas and payloads. */
import { type Attack, flood, inLanes, post } from './attack.ts';
import { LANES } from './holding.ts';

/** A filter of 39 KB with unknown members. Reporting them costs more the more there are. */
const wideFilter = JSON.stringify({
  query: 'query ($f: PendingRpcFilter) { pendingRpcCount(filter: $f) { count } }',
  variables: { f: Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`k${i}`, i])) },
});

const quadraticId = (n: number): string =>
  JSON.stringify({
    query: 'query ($id: ID!) { user(userId: $id) { id } }',
    variables: { id: n % 2 === 0 ? `a@${'.'.repeat(64_000)}@` : '\u0301\u0327'.repeat(32_000) },
  });

/** A document of 12 KB that is expensive to parse and to validate. */
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
