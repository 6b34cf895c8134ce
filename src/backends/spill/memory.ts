import type { Clock } from '../../core/clock.ts';
import type { Crypto } from '../../core/crypto.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/spill.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { SPILL_MEMORY_BYTES } from '../../core/limits.ts';

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
  const clean = (): number => {
    const now = clock.now();
    let removed = 0;
    for (const [name, { bytes, expiresAt }] of objects) {
      if (expiresAt > now) continue;
      objects.delete(name);
      held -= bytes;
      removed++;
    }
    return removed;
  };
  const makeRoom = (bytes: number): void => {
    if (held + bytes <= maxBytes) return;
    clean();
    for (const [name, object] of objects) {
      if (held + bytes <= maxBytes) return;
      objects.delete(name);
      held -= object.bytes;
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
    async read({ name, expiresAt }) {
      if (clock.now() >= expiresAt) return { state: 'expired' };
      const object = objects.get(name);
      return object ? { state: 'present', text: object.text } : { state: 'unavailable' };
    },
    clean,
  };
}
