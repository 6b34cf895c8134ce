/**
 * Implements core's ports with Node: the clock, digests and signatures, ids, the event loop, and the figures of the
 * process.
 */
import {
  createHash,
  createHmac,
  createSecretKey,
  hash,
  randomBytes,
  randomFillSync,
  randomInt,
  timingSafeEqual,
} from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Cancel, Clock, Crypto, EventLoop, ProcessMeter } from '../core/ports.ts';

/** The longest delay that a Node timer accepts, in milliseconds. A timer with a longer delay fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** The clock of the process, with timers that do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
  every(ms, run) {
    const timer = setInterval(run, Math.min(ms, LONGEST_MS));
    timer.unref();
    return () => clearInterval(timer);
  },
};

/**
 * The difference in milliseconds between a steady clock and the wall clock above which the wall clock counts as
 * stepped.
 */
const STEP_MS = 100;
/** The fraction by which a steady clock runs faster or slower, until it agrees with a stepped wall clock. */
const SLEW = 0.01;

/**
 * Returns a clock for a store in memory, which computes durations as differences of `now`. The clock shows the wall
 * time of `system` until that is stepped. Then it follows the elapsed time and approaches the wall time slowly, so that
 * a step of an hour ends nothing early or late. It never goes back.
 */
export function steadyClock(system: Clock): Clock {
  let offset = system.now() - system.monotonic();
  let slewedAt = system.monotonic();
  let last = -Infinity;
  const now = (): number => {
    const [wall, elapsed] = [system.now(), system.monotonic()];
    const apart = wall - elapsed - offset;
    const most = Math.abs(apart) <= STEP_MS ? STEP_MS : (elapsed - slewedAt) * SLEW;
    slewedAt = elapsed;
    offset += Math.max(-most, Math.min(most, apart));
    return (last = Math.max(last, Math.floor(Math.abs(apart) <= STEP_MS ? wall : elapsed + offset)));
  };
  return {
    now,
    monotonic: () => system.monotonic(),
    after: (ms, run) => system.after(ms, run),
    every: (ms, run) => system.every(ms, run),
  };
}

function after(ms: number, run: () => void): Cancel {
  if (ms > LONGEST_MS) {
    let cancel = after(LONGEST_MS, () => (cancel = after(ms - LONGEST_MS, run)));
    return () => cancel();
  }
  const timer = setTimeout(run, ms);
  timer.unref();
  return () => clearTimeout(timer);
}

/** Creates core's Crypto. `key` signs cursors, so all nodes of a deployment need the same key. */
export function createCrypto(key: string | Uint8Array): Crypto {
  // A key passed as bytes would be parsed for each signature. A KeyObject is parsed only once.
  const secret = createSecretKey(Buffer.from(key));
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return {
    randomId: createUuids(),
    randomToken: () => randomBytes(32).toString('base64url'),
    randomInt: (below) => randomInt(below),
    sha256: (text) => hash('sha256', text, 'base64url'),
    sign: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
    // The digests are compared because they have equal lengths: the timing reveals no length, and timingSafeEqual
    // cannot throw.
    equal: (a, b) => timingSafeEqual(digest(a), digest(b)),
    toBase64Url: (text) => Buffer.from(text, 'utf8').toString('base64url'),
    fromBase64Url(text) {
      if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
      try {
        return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64url'));
      } catch {
        return undefined;
      }
    },
  };
}

/** The number of random bytes that are read from the system at a time. */
const POOL = 4096;
/** For each byte of an id, the position of its two digits in the text. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const DIGITS = Buffer.from('0123456789abcdef', 'latin1');
const DASH = 0x2d;

/**
 * Creates a generator of version 7 UUIDs (RFC 9562): 48 bits of time in milliseconds and 74 random bits. The generator
 * takes a quarter of the time of `randomUUIDv7`. The texts of that function consist of twenty pieces, which take 700
 * bytes in memory each.
 */
export function createUuids(now: () => number = Date.now): () => string {
  const pool = Buffer.allocUnsafeSlow(POOL);
  const text = Buffer.allocUnsafeSlow(36).fill(DASH);
  let used = POOL;
  const put = (i: number, byte: number): void => {
    const place = PLACES[i] ?? 0;
    text[place] = DIGITS[byte >> 4] ?? 0;
    text[place + 1] = DIGITS[byte & 0x0f] ?? 0;
  };
  let written = -1;
  /** Writes the digits of the time, which all ids of one millisecond share. */
  const putTime = (time: number): void => {
    if (time === written) return;
    written = time;
    for (let i = 5, rest = time; i >= 0; i--, rest = Math.floor(rest / 256)) put(i, rest % 256);
  };
  return () => {
    if (used + 10 > POOL) {
      randomFillSync(pool);
      used = 0;
    }
    putTime(now());
    for (let i = 6; i < 16; i++) {
      const chance = pool[used++] ?? 0;
      put(i, i === 6 ? (chance & 0x0f) | 0x70 : i === 8 ? (chance & 0x3f) | 0x80 : chance);
    }
    return text.toString('latin1');
  };
}

// Implements core's EventLoop with Node's.

/**
 * How many turns of the event loop a piece of work yields. Node accepts one new connection in each turn. If work
 * yielded for a single turn, only one connection would be accepted between two pieces of work, and requests that are
 * ready would wait.
 */
const TURNS = 32;
/** The longest time to yield, in milliseconds. The work must go on even when each turn takes long. */
const WAIT_MS = 5;

export const systemLoop: EventLoop = {
  afterOthers(run) {
    const began = performance.now();
    let left = TURNS;
    const turn = (): void => {
      if (--left === 0 || performance.now() - began >= WAIT_MS) run();
      else setImmediate(turn);
    };
    setImmediate(turn);
  },
  atTurnEnd: setImmediate,
};

// Implements core's ProcessMeter with Node's.

/** The interval of the timer that measures the delay of the event loop, in milliseconds. */
const PROBE_MS = 20;
/**
 * The histogram of the event loop's delay, which starts at the first call of `systemProcess`. Its timer does not keep
 * the process alive.
 */
let probe: ReturnType<typeof monitorEventLoopDelay> | null = null;

/** The figures of this process. All relays of the process share the measurement of its event loop. */
export const systemProcess: ProcessMeter = {
  take() {
    const memoryBytes = process.memoryUsage.rss();
    if (probe === null || probe.count === 0) {
      probe ??= monitorEventLoopDelay({ resolution: PROBE_MS });
      probe.enable();
      return { memoryBytes, loopDelayMs: null };
    }
    // The histogram records the time from one run of the timer to the next, in nanoseconds.
    const loopDelayMs = Math.max(0, Math.round(probe.percentile(99) / 1e4 - PROBE_MS * 100) / 100);
    probe.reset();
    return { memoryBytes, loopDelayMs };
  },
};
