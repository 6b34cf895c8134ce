/**
 * Exports `callboard/enrol`, which enrols a device as a client of a user with a key of its own, and renews the device's
 * token. To stay small, it shares almost no code with the runtime.
 */
import { randomId } from '../link/ids.ts';
import { sleep, systemClock, type Clock } from '../link/platform.ts';

export type { Clock };

/** The stored record of the device: its key, and the client that it is. The private key cannot be read. */
export type DeviceRecord = {
  readonly key: CryptoKeyPair;
  readonly userId?: string | undefined;
  readonly clientId?: string | undefined;
};

/** Stores the record of the device. Default: in an IndexedDB of the page's origin. */
export type DeviceRecords = {
  get(): Promise<DeviceRecord | undefined>;
  set(record: DeviceRecord | undefined): Promise<void>;
};

export type EnrolOptions = {
  /** The base address of the relay, such as `https://relay.example`. */
  readonly url: string;
  /** The name of the device, for people: letters, digits, spaces and `. _ -`. */
  readonly name: string;
  /** The kind of program. Default `browser`. */
  readonly clientType?: 'browser' | 'console' | 'mobile' | 'web';
  /** Patterns of the actions that the device may advertise. Default: all actions. */
  readonly actions?: readonly string[];
  /** Called with the code that a person must enter, and with a new code whenever the previous one has expired. */
  readonly onCode: (code: string, expiresAt: Date) => void;
  readonly store?: DeviceRecords;
  /** A signal that ends the enrolment. */
  readonly signal?: AbortSignal;
  /** The function that sends requests. Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch;
  /** The source of time and timers. Default: the system's. */
  readonly clock?: Clock;
};

export type EnrolledDevice = {
  readonly userId: string;
  readonly clientId: string;
  /** Returns a valid token. Pass this function to the runtime. Rejects with `EnrolError` if the device was revoked. */
  readonly token: () => Promise<string>;
  /** Deletes the key. The device must then be enrolled again. */
  readonly forget: () => Promise<void>;
};

/**
 * The error of an enrolment or of a token. `code`: one of the relay's codes, such as `forbidden` if the device was
 * denied or revoked.
 */
export class EnrolError extends Error {
  override readonly name = 'EnrolError';
  readonly code: string;
  /** How long to wait before the next attempt, in milliseconds. */
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

/** A token is renewed this long before it expires, in milliseconds. */
const RENEW_MS = 300_000;
/** How long to wait after a temporary failure, in milliseconds, and the codes of temporary failures. */
const PAUSE_MS = 5_000;
const PASSING = ['unreachable', 'rate_limited', 'capacity_exceeded', 'store_unavailable', 'draining', 'internal'];

function unreachable(cause: unknown): never {
  throw new EnrolError('unreachable', `The relay did not answer: ${String(cause)}`);
}

/**
 * Resolves when a person has confirmed the device; at once if this was done before. Retries if the network fails.
 * Rejects with `EnrolError` if the device was denied or revoked, and with the signal's reason if the signal is aborted.
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
    // A proof is refused if the local clock is far off. The header tells the relay's time, where a page may read it.
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
      // If the key is unknown, or its code has expired, the device requests another code.
      isKnown = code !== 'not_found';
      if (!isKnown && wasKnown) continue;
      if (!PASSING.includes(code) && (code !== 'unauthenticated' || isTriedAgain)) throw error;
      isTriedAgain ||= code === 'unauthenticated';
      pauseMs = Math.max(PAUSE_MS, retryAfterMs);
    }
    await sleep(clock, pauseMs, signal);
  }
}

/** Makes a key that scripts of the page can use but cannot read. */
function newKey(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
}

/**
 * Signs a JWT that proves that this device has the key. The relay accepts it once, for a few minutes, and for one
 * purpose.
 */
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

/** Stores the record in an IndexedDB, which can store keys without revealing them. */
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
