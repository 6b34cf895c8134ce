/**
 * Creates a cache of at most `most` values that keeps at least the half that was used last. Keys longer than `longest`
 * characters are not stored.
 */
export function createDocumentCache<T>({ most, longest }: { most: number; longest: number }) {
  const half = Math.ceil(most / 2);
  let recent = new Map<string, T>();
  let older = new Map<string, T>();
  const put = (key: string, value: T): void => {
    if (recent.size >= half && !recent.has(key)) {
      older = recent;
      recent = new Map();
    }
    recent.set(key, value);
  };
  return {
    get(key: string): T | undefined {
      const found = recent.get(key);
      if (found !== undefined) return found;
      const old = older.get(key);
      if (old !== undefined) put(key, old);
      return old;
    },
    set(key: string, value: T): void {
      if (key.length <= longest) put(key, value);
    },
  };
}
