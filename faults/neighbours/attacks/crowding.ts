/** Lists the attacks that take all places of a kind: sockets, requests in progress, feeds, and whole guarantees. */
import type { Socket } from 'node:net';
import { freshToken, HOSTILE, relayUrl, type Site } from '../site.ts';
import { held, pause, type Attack, type AttackContext } from './attack.ts';
import { openLink } from './links.ts';
import { openRaw, post, SHARED_ADDRESS } from './requests.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
/** The limit of open files of the relays whose sockets are attacked. */
const DESCRIPTORS = 4_096;
/** The sockets that the hostile user keeps open on each relay. */
const SOCKETS = 4_000;
/** The sockets without a token that one address keeps open. */
const SOCKETS_WITHOUT_TOKEN = 300;
/** A request in progress sends a byte of its body this often, in milliseconds, so that no silence ends it. */
const BYTE_MS = 2_000;
/** The operations of one event stream, and the event streams, with which one user asks for all feeds of a node. */
const OPERATIONS = 100;
const STREAMS = 4;
const ACCOUNTS = 5;
/** The params of one command that fills the share of queued bytes, in bytes. */
const QUEUED_BYTES = MIB - 2_000;

/** Text of the first part of a request of `/healthz`, whose socket stays open afterwards. */
const health = (token: string | null): string =>
  `GET /healthz HTTP/1.1\r\nHost: x\r\n${token === null ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`;

/** Text of a request whose body of 60,000 bytes is not sent yet. */
const slow = (token: string): string =>
  `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\nAuthorization: Bearer ${token}\r\n\r\n{`;

type Crowd = {
  readonly sockets: number;
  readonly text: () => Promise<string>;
  readonly from?: string;
  /** Called for each open socket once every BYTE_MS. */
  readonly drip?: (socket: Socket) => void;
};

/** Keeps `sockets` open on each relay, and opens another for each one that the relay closes. */
async function crowd(context: AttackContext, { sockets, text, from, drip }: Crowd): Promise<void> {
  const { site, signal, count } = context;
  const timer = drip && setInterval(() => open.forEach((all) => all.forEach(drip)), BYTE_MS);
  const open = site.urls.map(() => new Set<Socket>());
  const fill = async (all: Set<Socket>, n: number): Promise<void> => {
    for (let opened = 1; !signal.aborted; opened++) {
      // A relay that accepts no socket leaves it waiting: it is not opened again until the relay decides.
      if (all.size >= sockets) await pause(20);
      else {
        const socket = await openRaw(site, n, await text(), from).catch(() => null);
        count(socket ? 'sockets' : 'sockets refused');
        if (!socket) await pause(50);
        else {
          all.add(socket);
          // Answers are read, so that the relay has no reason to close the socket.
          socket.resume();
          socket.on('end', () => socket.destroy());
          socket.on('close', () => all.delete(socket));
        }
      }
      if (opened % 20 === 0) await pause(10);
    }
  };
  await Promise.all(open.map(fill));
  clearInterval(timer);
}

/** Opens event streams and asks each for as many different feeds as a stream may carry. */
async function takeFeeds({ site, count, signal }: AttackContext, n: number, stream: number): Promise<void> {
  const url = `${relayUrl(site, n)}/graphql/stream`;
  const authorization = `Bearer ${await freshToken(HOSTILE)}`;
  const reserved = await fetch(url, { method: 'PUT', headers: { authorization } });
  const token = await reserved.text();
  const headers = { authorization, 'x-graphql-event-stream-token': token };
  const events = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' }, signal });
  void events.body?.pipeTo(new WritableStream()).catch(() => {});
  for (let i = 0; i < OPERATIONS; i++) {
    const query = `subscription{commandEvents(filter:{action:"a${stream}-${i}"}){stage}}`;
    const operation = JSON.stringify({ query, extensions: { operationId: `o${i}` } });
    const asked = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: operation,
    });
    await asked.arrayBuffer();
    count(`feeds: ${asked.status}`);
  }
}

/** Returns an advertisement of about 900 KB. */
const advertised = JSON.stringify({
  actions: Array.from({ length: 15 }, (_, i) => ({ name: `action${i}`, description: 'd'.repeat(60 * KIB) })),
});

/** Fills three shares in the name of one account, until it is refused each time. */
async function fillShares(context: AttackContext, account: string): Promise<void> {
  const { site, signal, count } = context;
  const token = await freshToken(account);
  const links = async (hello: (n: number) => object, name: string): Promise<void> => {
    for (let n = 0; !signal.aborted; n++) {
      const opened = await openLink(site, n, { token, ...hello(n) }).catch(() => null);
      count(opened ? name : `${name} refused`);
      // A refused account tries again, so that it takes each place that becomes free.
      await pause(opened ? 1 : 250);
    }
  };
  const queue = async (): Promise<void> => {
    for (let n = 0; !signal.aborted; n++) {
      const params = { filler: 'p'.repeat(QUEUED_BYTES) };
      const status = await post(site, n, {
        path: `/connections/${account}/absent-${n % 20}/actions/echo`,
        body: JSON.stringify({ params, wait_for: 'admitted', connect_within_ms: 300_000 }),
        token,
      });
      count(status < 300 ? 'commands parked' : 'commands refused');
      await pause(status < 300 ? 5 : 250);
    }
  };
  await Promise.all([
    links((n) => ({ clientId: `boaster-${n}`, payload: advertised }), 'advertisements'),
    links(() => ({}), 'links'),
    queue(),
  ]);
}

const accounts = (): readonly string[] => Array.from({ length: ACCOUNTS }, (_, i) => `${HOSTILE}-${i}`);
const perRelay = ({ urls }: Site): readonly number[] => urls.map((_, n) => n);

/** The attacks that leave others no place. */
export const CROWDING: readonly Attack[] = [
  {
    name: 'sockets-with-token',
    says: 'up to 4000 idle sockets a relay with a valid token, where a relay has 4096 descriptors',
    descriptors: DESCRIPTORS,
    async run(context) {
      const token = await freshToken(HOSTILE);
      await crowd(context, { sockets: SOCKETS, text: async () => health(token) });
    },
  },
  {
    name: 'slow-requests',
    says: 'up to 4000 requests in progress a relay, whose bodies arrive byte by byte, where a relay has 4096 descriptors',
    descriptors: DESCRIPTORS,
    async run(context) {
      const token = await freshToken(HOSTILE);
      await crowd(context, {
        sockets: SOCKETS,
        text: async () => slow(token),
        drip: (socket) => void socket.write(' '),
      });
    },
  },
  {
    name: 'sockets-without-token',
    says: '300 idle sockets without a token, from the address of the honest user and the operator',
    run: (context) =>
      crowd(context, { sockets: SOCKETS_WITHOUT_TOKEN, text: async () => health(null), from: SHARED_ADDRESS }),
  },
  {
    name: 'all-feeds',
    says: 'feeds of commandEvents with 400 different filters on each relay',
    async prepare(context) {
      for (const n of perRelay(context.site))
        for (let stream = 0; stream < STREAMS; stream++)
          await takeFeeds(context, n, stream).catch(() => context.count('streams refused'));
    },
    run: held,
  },
  {
    name: 'five-accounts',
    says: 'five accounts that each fill their shares of links, advertisements and queued params',
    // Four guarantees fill the total, as they do for the shares in bytes.
    env: { CALLBOARD_LINKS_SHARE: '500', CALLBOARD_LINKS_MAX: '2000' },
    async run(context) {
      await Promise.all(accounts().map((account) => fillShares(context, account)));
    },
  },
];
