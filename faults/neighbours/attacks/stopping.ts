/** Lists the attacks with pauses, revocations and enrolments of devices. */
import { generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto';
import { createLinkCaller } from '../../../src/clients/caller/index.ts';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { freshToken, HOSTILE, linkUrl, relayUrl } from '../site.ts';
import { type Attack, type AttackContext, flood, inLanes, pause, post, postFrom, takeFeeds } from './attack.ts';

/** The number of commands that wait for clients that never connect, and the number of these clients. */
const PARKED = 4_000;
const ABSENT = 20;
/** The maximum number of pauses of one user. */
const PAUSES = 20;
/**
 * The number of devices that the hostile user enrols, and the number of addresses and keys from which devices send
 * requests.
 */
const DEVICES = 1_000;
const ADDRESSES = 200;
const KEYS = 200;
/** A pattern of 256 characters with the maximum number of parts. */
const PATTERN = `${'*a'.repeat(126)}*z`;

/** Fills the queues of the hostile user, with at most `PARKED` commands. */
async function park({ site, count }: AttackContext): Promise<void> {
  const params = { wait_for: 'admitted', connect_within_ms: 300_000 };
  let n = 0;
  const lane = async (): Promise<void> => {
    while (n < PARKED) {
      const path = `/connections/${HOSTILE}/absent-${n % ABSENT}/actions/echo`;
      const status = await post(site, n++, { path, body: JSON.stringify(params) });
      count(status < 300 ? 'commands parked' : 'commands refused');
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
}

/** Pauses calls of the hostile user. Returns the id of the pause; null if it was refused. */
async function stop({ site, count }: AttackContext, n: number, cover: object): Promise<string | null> {
  const body = JSON.stringify({ reason: 'an attack', queued: 'cancel', running: 'cancel', ...cover });
  const { status, answer } = await postFrom('127.0.0.2', site, n, {
    path: '/pauses',
    body,
    token: await freshToken(HOSTILE),
  });
  count(status === 201 ? 'pauses' : `pauses refused (${status})`);
  return status === 201 ? (answer as { pause_id: string }).pause_id : null;
}

async function resume({ site, count }: AttackContext, n: number, pauseId: string): Promise<void> {
  const headers = { authorization: `Bearer ${await freshToken(HOSTILE)}` };
  const response = await fetch(`${relayUrl(site, n)}/pauses/${pauseId}`, { method: 'DELETE', headers });
  await response.arrayBuffer();
  count(response.ok ? 'resumed' : 'not resumed');
}

/** Repeatedly asks which pauses exist, and what a pause would affect. */
function look(context: AttackContext): Promise<void> {
  const fields = Array.from(
    { length: 10 },
    (_, i) => `a${i}:pauseReach(cover:{action:"${PATTERN}"}){queued running} b${i}:pauses(first:20){nodes{reason}}`,
  );
  const body = JSON.stringify({ query: `{${fields.slice(0, 5).join(' ')}}` });
  return inLanes(context, 4, async (n) => {
    context.count(`looks ${await post(context.site, n, { path: '/graphql', body })}`);
  });
}

/** Calls the hostile user's own client, which answers at once. */
async function call(context: AttackContext): Promise<void> {
  const { site, count } = context;
  const token = (): Promise<string> => freshToken(HOSTILE);
  const runtime = createRuntime({ url: linkUrl(site, 1), token, clientId: 'giver', clientType: 'console' });
  runtime.handle('a'.repeat(60), {}, () => null);
  runtime.connect();
  const caller = createLinkCaller({ url: linkUrl(site, 0), token });
  await inLanes(context, 4, async () => {
    const target = { userId: HOSTILE, clientId: 'giver', action: 'a'.repeat(60) };
    const { outcome } = await caller.invoke(target, {}, { connectWithinMs: 5_000 });
    count(`calls ${outcome}`);
  });
}

async function revoke(context: AttackContext, n: number): Promise<void> {
  const target = n % 2 === 0 ? { token_id: randomUUID() } : { client_id: `nothing-${n}`, user_id: HOSTILE };
  const issued_before = new Date(0).toISOString();
  const wide = n % 20 === 1 ? { issued_before } : target;
  const body = JSON.stringify({ reason: 'an attack', ...wide });
  const status = await post(context.site, n, { path: '/revocations', body });
  context.count(status === 201 ? 'revocations' : `revocations refused (${status})`);
  if (status !== 201) await pause(20);
}

type DeviceKey = { readonly jwk: object; readonly privateKey: KeyObject };

function newKeys(count: number): readonly DeviceKey[] {
  return Array.from({ length: count }, () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return { jwk: publicKey.export({ format: 'jwk' }), privateKey };
  });
}

/** Signs a device's request. `isBroken`: whether the signature is wrong in an otherwise well-formed proof. */
function proofOf({ jwk, privateKey }: DeviceKey, purpose: 'enrol' | 'token', isBroken = false): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { aud: `callboard:${purpose}`, iat: Math.floor(Date.now() / 1000), jti: randomUUID() };
  const text = `${encode({ alg: 'ES256', typ: 'callboard-proof+jwt', jwk })}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(isBroken ? 'another text' : text), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${text}.${signature.toString('base64url')}`;
}

const enrolment = (key: DeviceKey): string =>
  JSON.stringify({ name: 'device', client_type: 'browser', proof: proofOf(key, 'enrol') });

/** Enrols a device, and confirms or denies it as the hostile user. */
async function enrol({ site, count }: AttackContext, key: DeviceKey, decision: 'confirm' | 'deny'): Promise<void> {
  const token = await freshToken(HOSTILE);
  const begun = await postFrom('127.0.0.2', site, 0, { path: '/enrolments', body: enrolment(key), token });
  count(`enrolments ${begun.status}`);
  if (begun.status !== 201) return pause(20);
  const body = JSON.stringify({ code: (begun.answer as { user_code: string }).user_code, decision });
  const { status } = await postFrom('127.0.0.2', site, 0, { path: '/enrolments/decide', body, token });
  count(`${decision}: ${status}`);
}

/** Repeatedly asks for the maximum number of devices in one answer. */
function listDevices(context: AttackContext): Promise<void> {
  const fields = Array.from({ length: 9 }, (_, i) => `a${i}:devices(first:1000){nodes{revoked}}`);
  const body = JSON.stringify({ query: `{${fields.join(' ')}}` });
  return inLanes(context, 4, async (n) => {
    context.count(`listings ${await post(context.site, n, { path: '/graphql', body })}`);
  });
}

/** The attacks with pauses, revocations and enrolments. */
const ACTS: readonly Attack[] = [
  {
    name: 'many-pauses',
    says: '20 pauses with patterns of 256 characters, calls that each pass them, counts of what they touch, and pauses that cancel 4000 queued commands',
    async prepare(context) {
      await park(context);
      for (let n = 0; n < PAUSES - 1; n++)
        await stop(context, n, { action: PATTERN, caller: PATTERN, queued: 'keep', running: 'leave' });
    },
    async run(context) {
      const cancelling = inLanes(context, 1, async (n) => {
        const pauseId = await stop(context, n, { action: 'echo' });
        if (pauseId !== null) await resume(context, n, pauseId);
        await park(context);
      });
      await Promise.all([cancelling, look(context), call(context)]);
    },
  },
  {
    name: 'pauses-in-a-loop',
    says: '20 clients that pause and resume themselves 100 times a second, with 400 feeds of pauseEvents on each relay, and a user who does the same',
    prepare: (context) => takeFeeds(context, (name) => `subscription{${name}:pauseEvents{change pause{reason}}}`),
    async run(context) {
      const frames = (i: number): string =>
        JSON.stringify(
          i % 2 === 0
            ? { type: 'pause', ref: `r${i}`, op: 'pause', reason: `again ${i}`, queued: 'cancel', running: 'cancel' }
            : { type: 'pause', ref: `r${i}`, op: 'resume' },
        );
      const links = Array.from({ length: PAUSES }, (_, lane) => flood(context, { lane, frames }));
      const byUser = inLanes(context, 4, async (n) => {
        const pauseId = await stop(context, n, { client_id: 'nothing' });
        if (pauseId === null) await pause(20);
        else await resume(context, n, pauseId);
      });
      await Promise.all([...links, byUser]);
    },
  },
  {
    name: 'many-revocations',
    says: 'as many revocations as one user may set, beside 4000 queued commands, and lists of 1000 devices',
    async prepare(context) {
      await park(context);
      const keys = newKeys(DEVICES);
      let n = 0;
      const lane = async (): Promise<void> => {
        for (let key = keys[n++]; key; key = keys[n++]) await enrol(context, key, 'confirm');
      };
      await Promise.all(Array.from({ length: 8 }, lane));
    },
    async run(context) {
      await Promise.all([inLanes(context, 8, (n) => revoke(context, n)), listDevices(context)]);
    },
  },
  {
    name: 'enrolments-without-token',
    says: 'proofs of keys without a token from 200 addresses, right and wrong ones, and a user who enrols and denies, and guesses codes',
    async run(context) {
      const { site, count } = context;
      const keys = newKeys(KEYS);
      const keyOf = (n: number): DeviceKey => keys[n % KEYS] as DeviceKey;
      const addressOf = (n: number): string => `127.0.1.${(n % ADDRESSES) + 1}`;
      const strangers = inLanes(context, 32, async (n) => {
        const key = keyOf(n);
        const [path, body] =
          n % 3 === 0
            ? ['/enrolments', enrolment(key)]
            : ['/devices/token', JSON.stringify({ proof: proofOf(key, 'token', n % 3 === 1) })];
        const { status } = await postFrom(addressOf(n), site, n, { path, body });
        count(`proofs ${status}`);
      });
      const guesses = inLanes(context, 2, async (n) => {
        const status = await post(site, n, { path: '/enrolments/lookup', body: JSON.stringify({ code: 'BCDF-GHJK' }) });
        count(`guesses ${status}`);
      });
      const own = inLanes(context, 4, (n) => enrol(context, keyOf(n), 'deny'));
      await Promise.all([strangers, guesses, own]);
    },
  },
];

/** The store of Redis scripts supports none of these features and refuses every operation. */
export const STOPPING: readonly Attack[] = ACTS.map((attack) => ({ ...attack, notIn: ['shared'] }));
