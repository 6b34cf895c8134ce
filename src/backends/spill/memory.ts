import type { Clock } from '../../core/clock.ts';
import type { Crypto } from '../../core/crypto.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/spill.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { SPILL_CLEAN_MS, SPILL_MEMORY_BYTES } from '../../core/limits.ts';

type Held = { readonly text: JsonText; readonly bytes: number; readonly expiresAt: number };

/**
 * A managed spill store in this process, for where no directory is configured. Bounded as the history beside it is: the oldest objects go
 * first and then read `unavailable`. Gone with the process.
 */
export function createMemorySpill(
  clock: Clock,
  crypto: Pick<Crypto, 'randomId' | 'sha256'>,
  maxBytes: number = SPILL_MEMORY_BYTES,
): SpillStore {
  const objects = new Map<string, Held>();
  let held = 0;
  let cleanedAt = -Infinity;
  const drop = (name: string): void => {
    held -= objects.get(name)?.bytes ?? 0;
    objects.delete(name);
  };
  const clean = (): number => {
    const before = objects.size;
    cleanedAt = clock.now();
    for (const [name, { expiresAt }] of objects) if (expiresAt <= cleanedAt) drop(name);
    return before - objects.size;
  };
  const makeRoom = (bytes: number): void => {
    if (held + bytes > maxBytes || clock.now() - cleanedAt >= SPILL_CLEAN_MS) clean();
    for (const name of objects.keys()) {
      if (held + bytes <= maxBytes) return;
      drop(name);
    }
  };
  return {
    kind: 'memory',
    managed: true,
    async put(text, expiresAt) {
      const bytes = utf8Length(text);
      if (bytes > maxBytes) throw new CallboardError('payload_store_full', 'There is no room for this payload.');
      makeRoom(bytes);
      const name = crypto.randomId();
      objects.set(name, { text, bytes, expiresAt });
      held += bytes;
      return { name, bytes, sha256: crypto.sha256(text), expiresAt };
    },
    discard: ({ name }) => drop(name),
    async read({ name, bytes, sha256, expiresAt }) {
      if (clock.now() >= expiresAt) return { state: 'expired' };
      const object = objects.get(name);
      const whole = object?.bytes === bytes && crypto.sha256(object.text) === sha256;
      return object && whole ? { state: 'present', text: object.text } : { state: 'unavailable' };
    },
    clean,
  };
}
