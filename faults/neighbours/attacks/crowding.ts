/**
 * Lists the attacks that use up a resource (sockets, requests in progress, feeds, whole guarantees), and those that
 * fill the store.
 */
import type { Socket } from 'node:net';
import { createLinkCaller } from '../../../src/clients/caller/index.ts';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { freshToken, HOSTILE, linkUrl } from '../site.ts';
import {
  type Attack,
  type AttackContext,
  held,
  inLanes,
  openLink,
  openRaw,
  pause,
  post,
  SHARED_ADDRESS,
  takeFeeds,
} from './attack.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
/** The limit of open files of the relays whose sockets are attacked. */
const DESCRIPTORS = 4_096;
/** The number of sockets that the hostile user keeps open to each relay. */
const SOCKETS = 4_000;
/** The number of sockets without a token that one address keeps open. */
const SOCKETS_WITHOUT_TOKEN = 300;
/**
 * The interval at which an open socket sends something, in milliseconds. The relay closes a socket that is silent for
 * ten seconds.
 */
const DRIP_MS = 5_000;
const DRIP_PARTS = 50;
/** The timeout for opening the sockets, in milliseconds. */
const FILL_MS = 60_000;
/**
 * The number of parallel loops that open sockets to one relay, and the pause of a loop after each socket, in
 * milliseconds.
 */
const LANES = 8;
const LANE_MS = 5;
const ACCOUNTS = 5;

/** Returns the text of a request for `/healthz`. Its socket stays open afterwards. */
const health = (token: string | null): string =>
  `GET /healthz HTTP/1.1\r\nHost: x\r\n${token === null ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`;

/** Returns the head of a request whose body of 60,000 bytes is not sent yet. */
const slow = (token: string): string =>
  `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\nAuthorization: Bearer ${token}\r\n\r\n{`;

type Crowd = {
  readonly sockets: number;
  readonly text: string;
  readonly from?: string;
  /** The text that each open socket sends once per DRIP_MS, so that it is not closed for its silence. */
  readonly drip?: string;
};

/**
 * Keeps `sockets` open to each relay, and replaces each socket that the relay closes. Resolves when each relay has this
 * many sockets, or after FILL_MS, and continues until the attack is over.
 */
async function crowd(context: AttackContext, of: Crowd): Promise<void> {
  const all = context.site.urls.map(() => new Set<Socket>());
  all.forEach((open, n) => {
    for (let lane = 0; lane < LANES; lane++) void fill(context, { ...of, open, n });
  });
  let part = 0;
  const drip = setInterval(() => {
    // Only a part of the sockets sends at a time, so that the requests do not arrive together. The attack consists in
    // the number of sockets.
    part = (part + 1) % DRIP_PARTS;
    const sockets = all.flatMap((open) => [...open]).filter((_, i) => i % DRIP_PARTS === part);
    for (const socket of sockets) if (of.drip !== undefined) socket.write(of.drip);
  }, DRIP_MS / DRIP_PARTS);
  context.signal.addEventListener('abort', () => clearInterval(drip));
  const late = performance.now() + FILL_MS;
  while (all.some(({ size }) => size < of.sockets) && performance.now() < late) await pause(100);
  context.count('sockets held', Math.max(...all.map(({ size }) => size)));
}

async function fill(
  { site, signal, count }: AttackContext,
  { open, n, sockets, text, from }: Crowd & { readonly open: Set<Socket>; readonly n: number },
): Promise<void> {
  while (!signal.aborted) {
    if (open.size >= sockets) {
      await pause(20);
      continue;
    }
    const socket = await openRaw(site, n, text, from).catch(() => null);
    count(socket ? 'sockets' : 'sockets refused');
    if (!socket) {
      await pause(50);
      continue;
    }
    open.add(socket);
    // Answers are read, so that the relay has no reason to close the socket.
    socket.resume();
    socket.on('end', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    await pause(LANE_MS);
  }
}

/** Returns an advertisement of about this many bytes. */
const advertised = (bytes: number): string =>
  JSON.stringify({
    actions: Array.from({ length: 15 }, (_, i) => ({ name: `action${i}`, description: 'd'.repeat(bytes / 15) })),
  });

/**
 * Repeats an operation that uses a given number of bytes, until the attack is over. After each refusal it halves the
 * number, until the smallest remaining part of the share is used too.
 */
async function takeAll(
  { signal }: AttackContext,
  act: (n: number, bytes: number) => Promise<boolean>,
  filled: () => void,
): Promise<void> {
  let bytes = MIB - 100 * KIB;
  for (let n = 0; !signal.aborted; n++) {
    const taken = await act(n, bytes).catch(() => false);
    if (taken) continue;
    if (bytes <= KIB) filled();
    bytes = Math.max(KIB, bytes / 2);
    if (bytes === KIB) await pause(100);
  }
}

/**
 * Fills three shares with the account's data. Resolves when each share has refused more, and continues until the attack
 * is over.
 */
async function fillShares(context: AttackContext, account: string): Promise<void> {
  const { site, count } = context;
  const token = await freshToken(account);
  const counted = (name: string, taken: boolean): boolean => {
    count(taken ? name : `${name} refused`);
    return taken;
  };
  const link = async (n: number, hello: object, name: string): Promise<boolean> =>
    counted(name, (await openLink(site, n, { token, ...hello }).catch(() => null)) !== null);
  const park = async (n: number, bytes: number): Promise<boolean> => {
    const params = { filler: 'p'.repeat(bytes) };
    const status = await post(site, n, {
      path: `/connections/${account}/absent-${n % 20}/actions/echo`,
      body: JSON.stringify({ params, wait_for: 'admitted', connect_within_ms: 300_000 }),
      token,
    });
    return counted('commands parked', status < 300);
  };
  const fillings = [
    (n: number, bytes: number) => link(n, { clientId: `boaster-${n}`, payload: advertised(bytes) }, 'advertisements'),
    (n: number) => link(n, {}, 'links'),
    park,
  ].map((act) => {
    const filled = Promise.withResolvers<void>();
    void takeAll(context, act, filled.resolve);
    return filled.promise;
  });
  await Promise.race([Promise.all(fillings), pause(FILL_MS)]);
}

const accounts = (): readonly string[] => Array.from({ length: ACCOUNTS }, (_, i) => `${HOSTILE}-${i}`);

/** The attacks that leave no room for other users. */
export const CROWDING: readonly Attack[] = [
  {
    name: 'sockets-with-token',
    says: 'up to 4000 idle sockets a relay with a valid token, where a relay has 4096 descriptors',
    descriptors: DESCRIPTORS,
    async prepare(context) {
      const text = health(await freshToken(HOSTILE));
      await crowd(context, { sockets: SOCKETS, text, drip: text });
    },
    run: held,
  },
  {
    name: 'slow-requests',
    says: 'up to 4000 requests in progress a relay, whose bodies arrive byte by byte, where a relay has 4096 descriptors',
    descriptors: DESCRIPTORS,
    async prepare(context) {
      await crowd(context, { sockets: SOCKETS, text: slow(await freshToken(HOSTILE)), drip: ' ' });
    },
    run: held,
  },
  {
    name: 'sockets-without-token',
    says: '300 idle sockets without a token, from the address of the honest user and the operator',
    prepare: (context) =>
      crowd(context, { sockets: SOCKETS_WITHOUT_TOKEN, text: health(null), drip: health(null), from: SHARED_ADDRESS }),
    run: held,
  },
  {
    name: 'all-feeds',
    says: 'feeds of commandEvents with 400 different filters on each relay',
    async prepare(context) {
      await takeFeeds(context, (name) => `subscription{commandEvents(filter:{action:"${name}"}){stage}}`);
    },
    run: held,
  },
  {
    name: 'five-accounts',
    says: 'five accounts that each fill their shares of links, advertisements and queued params',
    // Four guarantees fill the total, as for the shares that count bytes.
    env: { CALLBOARD_LINKS_SHARE: '500', CALLBOARD_LINKS_MAX: '2000' },
    async prepare(context) {
      await Promise.all(accounts().map((account) => fillShares(context, account)));
    },
    run: held,
  },
];

// The attacks that fill the store: history, commands, records of ended commands, sites and large payloads.

/** Makes calls of the hostile user to its own client, with results of `bytes`. */
async function calls(context: AttackContext, lanes: number, bytes: number, restMs: number): Promise<void> {
  const { site, count } = context;
  const result = 'r'.repeat(bytes);
  const runtime = createRuntime({
    url: linkUrl(site, 1),
    token: () => freshToken(HOSTILE),
    clientId: 'giver',
    clientType: 'console',
  });
  runtime.handle('give', {}, () => result);
  runtime.connect();
  const caller = createLinkCaller({ url: linkUrl(site, 0), token: () => freshToken(HOSTILE) });
  await inLanes(context, lanes, async (n) => {
    const answer = await caller.invoke(
      { userId: HOSTILE, clientId: 'giver', action: 'give' },
      {},
      { connectWithinMs: 5_000, commandId: `hostile-${n}` },
    );
    count(answer.outcome === 'completed' ? 'commands completed' : 'commands otherwise');
    if (restMs > 0) await pause(restMs);
  });
}

/** The attacks whose data the relay keeps after the attack, so that the data of other users might be evicted. */
export const STORING: readonly Attack[] = [
  {
    name: 'large-results',
    says: 'results of 1 MB, kept for the hour',
    run: (context) => calls(context, 4, MIB - 2_000, 0),
  },
  {
    name: 'many-commands',
    says: 'small commands with ids of its own, as fast as possible',
    run: (context) => calls(context, 8, 10, 0),
  },
  {
    name: 'full-store',
    says: 'events of 100 KB and of 10 KB, until history and spill store are full',
    run: (context) =>
      inLanes(context, 2, async (n) => {
        const payload = 'p'.repeat(n % 2 === 0 ? 100 * KIB : 10 * KIB);
        const message = { client_id: 'pusher', instance_id: 'i', kind: 'event', stream_suffix: `s${n % 50}`, payload };
        const messages = Array.from({ length: n % 2 === 0 ? 9 : 90 }, () => message);
        const status = await post(context.site, n, { path: '/ingest', body: JSON.stringify(messages) });
        context.count(status === 200 ? 'events' : 'events refused', messages.length);
        await pause(10);
      }),
  },
];
