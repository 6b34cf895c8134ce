/** Lists the attacks that hold resources: links, streams, waits, and unread answers. */
import { freshToken, HOSTILE } from '../site.ts';
import { type Attack, flood, held, inLanes, openLink, openRaw, pause, post } from './attack.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
export const LANES = 4;

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
