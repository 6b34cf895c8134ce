/** A cache with a bounded number of entries; each entry expires after a fixed time. */
import type { Clock } from '../core/clock.ts';

/**
 * A bounded TTL cache: an entry expires `ms` milliseconds after it was set, and the oldest is evicted beyond `size`
 * entries.
 */
export type TtlCache<T> = {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
  clear(): void;
  readonly size: number;
};

export function createTtlCache<T>({ clock, size, ms }: { clock: Clock; size: number; ms: number }): TtlCache<T> {
  const entries = new Map<string, { readonly value: T; readonly until: number }>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry.until > clock.now()) return entry.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value) {
      entries.delete(key);
      entries.set(key, { value, until: clock.now() + ms });
      if (entries.size <= size) return;
      const oldest = entries.keys().next();
      if (!oldest.done) entries.delete(oldest.value);
    },
    clear: () => entries.clear(),
    get size() {
      return entries.size;
    },
  };
}
