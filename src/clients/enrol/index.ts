/**
 * Exports `callboard/enrol`: enrols this device as a client of a user, with a key of its own, and renews its token.
 * It shares next to no code with the runtime, so that it stays small.
 */
import { randomId } from '../link/ids.ts';
import { sleep, systemClock, type Clock } from '../link/platform.ts';

export type { Clock };

/** What the device keeps: its key, and which client it is. The private key cannot be read out of it. */
export type DeviceRecord = {
  readonly key: CryptoKeyPair;
  readonly userId?: string | undefined;
  readonly clientId?: string | undefined;
};

/** Where a device keeps its record. Default: an IndexedDB of the page's origin. */
export type DeviceRecords = {
  get(): Promise<DeviceRecord | undefined>;
  set(record: DeviceRecord | undefined): Promise<void>;
};

export type EnrolOptions = {
  /** The base address of the relay, such as `https://relay.example`. */
  readonly url: string;
  /** What people call the device: letters, digits, spaces and `. _ -`. */
  readonly name: string;
  /** What kind of program it is. Default `browser`. */
  readonly clientType?: 'browser' | 'console' | 'mobile' | 'web';
  /** Patterns of the only actions that it may advertise. Default: any. */
  readonly actions?: readonly string[];
  /** Called with the code for a person to enter, and with a new code each time one has expired. */
  readonly onCode: (code: string, expiresAt: Date) => void;
  readonly store?: DeviceRecords;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
  /** The function that sends requests. Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch;
  /** The source of time and timers. Default: the system's. */
  readonly clock?: Clock;
};

export type EnrolledDevice = {
  readonly userId: string;
  readonly clientId: string;
  /** Returns a valid token: pass this function to the runtime. Rejects with `EnrolError` when the device was revoked. */
  readonly token: () => Promise<string>;
  /** Forgets the key. The device must be enrolled again. */
  readonly forget: () => Promise<void>;
};

/** Why a device is not enrolled. `code` is one of the relay's, such as `forbidden`: it was denied or revoked. */
export class EnrolError extends Error {
  override readonly name = 'EnrolError';
  readonly code: string;
  /** How long to wait before another attempt, in milliseconds. */
  readonly retryAfterMs: number;

  constructor(code: string, message: string, retryAfterMs = 0) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

type Answer = {
  readonly state: 'open' | 'confirmed';
  readonly user_id: string | null;
  readonly client_id: string | null;
  readonly token: string | null;
  readonly token_expires_at: string | null;
  readonly poll_ms: number;
  readonly now: string;
};

/** A token is renewed so long before it expires, in milliseconds. */
const RENEW_MS = 300_000;
/** The pause after a failure that may pass, in milliseconds, and the codes of such failures. */
const PAUSE_MS = 5_000;
const PASSING = ['unreachable', 'rate_limited', 'capacity_exceeded', 'store_unavailable', 'draining', 'internal'];

function unreachable(cause: unknown): never {
  throw new EnrolError('unreachable', `The relay did not answer: ${String(cause)}`);
}

/**
 * Resolves as soon as a person has confirmed the device; at once if one has before. A network that fails is tried again.
 * Rejects with `EnrolError` if the device was denied or revoked, and with the signal's reason.
 */
export async function enrol(options: EnrolOptions): Promise<EnrolledDevice> {
  const { url, signal, store = inDatabase(), fetch = globalThis.fetch, clock = systemClock } = options;
  const known = await store.get();
  const key = known?.key ?? (await newKey());
  if (!known) await store.set({ key });
  let skewMs = 0;
  let isTriedAgain = false;
  let current: { readonly token: string; readonly until: number } | undefined;
  let renewing: Promise<string> | undefined;

  const post = async <T extends { readonly now: string }>(path: string, purpose: string, body: object): Promise<T> => {
    const proof = await prove(key, purpose, clock.now() + skewMs);
    const sent = fetch(url.replace(/\/+$/, '') + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, proof }),
      ...(signal && { signal }),
    });
    const response = await sent.catch(unreachable);
    const answer = await response.json().catch(unreachable);
    // A clock that is wrong by much is found here, where the page may read the header.
    const date = response.headers.get('date');
    if (date !== null && !response.ok) skewMs = Date.parse(date) - clock.now();
    if (!response.ok)
      throw new EnrolError(answer.code, answer.detail, Number(response.headers.get('retry-after') ?? 0) * 1000);
    skewMs = Date.parse(answer.now) - clock.now();
    return answer;
  };
  const ask = (): Promise<Answer> => post<Answer>('/devices/token', 'token', {});
  const keep = ({ token, token_expires_at }: Answer): string => {
    current = { token: token ?? '', until: Date.parse(token_expires_at ?? '') - skewMs - RENEW_MS };
    return current.token;
  };
  const renew = async (): Promise<string> => {
    const answer = await ask();
    if (answer.token === null) throw new EnrolError('forbidden', 'The device is not confirmed.');
    return keep(answer);
  };
  const begin = async (): Promise<void> => {
    const { name, clientType = 'browser', actions } = options;
    const body = { name, client_type: clientType, actions };
    const { user_code, expires_at } = await post<{ user_code: string; expires_at: string; now: string }>(
      '/enrolments',
      'enrol',
      body,
    );
    options.onCode(user_code, new Date(Date.parse(expires_at) - skewMs));
  };

  let isKnown = true;
  for (;;) {
    let pauseMs = PAUSE_MS;
    const wasKnown = isKnown;
    try {
      signal?.throwIfAborted();
      if (!isKnown) await begin();
      isKnown = true;
      const answer = await ask();
      const { user_id: userId, client_id: clientId, poll_ms } = answer;
      if (userId !== null && clientId !== null) {
        keep(answer);
        await store.set({ key, userId, clientId });
        return {
          ...{ userId, clientId, forget: () => store.set(undefined) },
          token: async () =>
            current && clock.now() < current.until
              ? current.token
              : (renewing ??= renew().finally(() => (renewing = undefined))),
        };
      }
      pauseMs = poll_ms;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof EnrolError)) throw error;
      const { code, retryAfterMs } = error;
      // Nothing is known of the key, or its code has expired: the device asks for another one.
      isKnown = code !== 'not_found';
      if (!isKnown && wasKnown) continue;
      if (!PASSING.includes(code) && (code !== 'unauthenticated' || isTriedAgain)) throw error;
      isTriedAgain ||= code === 'unauthenticated';
      pauseMs = Math.max(PAUSE_MS, retryAfterMs);
    }
    await sleep(clock, pauseMs, signal);
  }
}

/** A key that scripts of the page may use, and never read. */
function newKey(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
}

/** Signs a JWT that the relay accepts once, within some minutes, and for one purpose. */
async function prove({ publicKey, privateKey }: CryptoKeyPair, purpose: string, now: number): Promise<string> {
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey);
  const header = { alg: 'ES256', typ: 'callboard-proof+jwt', jwk: { kty, crv, x, y } };
  const claims = {
    aud: `callboard:${purpose}`,
    iat: Math.floor(now / 1000),
    jti: randomId(''),
  };
  const text = `${encode(header)}.${encode(claims)}`;
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
  const signature = await crypto.subtle.sign(algorithm, privateKey, new TextEncoder().encode(text));
  return `${text}.${encode(new Uint8Array(signature))}`;
}

function encode(value: object): string {
  const bytes = value instanceof Uint8Array ? value : new TextEncoder().encode(JSON.stringify(value));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

const DATABASE = 'callboard-device';

/** Keeps the record in the browser, which stores keys without showing them. */
function inDatabase(): DeviceRecords {
  const run = async <T>(mode: IDBTransactionMode, act: (records: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
    const opening = indexedDB.open(DATABASE);
    opening.onupgradeneeded = () => void opening.result.createObjectStore(DATABASE);
    const database = await resultOf(opening);
    try {
      return await resultOf(act(database.transaction(DATABASE, mode).objectStore(DATABASE)));
    } finally {
      database.close();
    }
  };
  return {
    get: () => run<DeviceRecord | undefined>('readonly', (records) => records.get(0)),
    async set(record) {
      if (record) await run('readwrite', (records) => records.put(record, 0));
      else await run('readwrite', (records) => records.delete(0));
    },
  };
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error ?? new Error('The database failed.'));
  });
}
