/**
 * A cache of at most `most` values that evicts the least recently used. Keys longer than `longest` characters are not
 * stored.
 */
export function createDocumentCache<T>({ most, longest }: { most: number; longest: number }) {
  const kept = new Map<string, T>();
  return {
    get(key: string): T | undefined {
      const value = kept.get(key);
      if (value !== undefined) {
        kept.delete(key);
        kept.set(key, value);
      }
      return value;
    },
    set(key: string, value: T): void {
      if (key.length > longest) return;
      kept.delete(key);
      kept.set(key, value);
      const [oldest] = kept.keys();
      if (kept.size > most && oldest !== undefined) kept.delete(oldest);
    },
  };
}
