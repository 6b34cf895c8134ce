const LONGEST = 16 * 1024;
const BODIES = 500;

/** Bodies of requests that come again and again, parsed once. Keeps at most 500 of at most 16 KiB, the oldest go first. */
export type Bodies = {
  /** The body that these bytes were kept with; undefined: none. */
  recall(bytes: Buffer): unknown;
  /** Must be the JSON of these bytes, and must not be changed by anybody. */
  keep(bytes: Buffer, body: unknown): void;
};

export function createBodies(): Bodies {
  const kept = new Map<string, unknown>();
  return {
    recall: (bytes) => (kept.size === 0 || bytes.length > LONGEST ? undefined : kept.get(bytes.toString('latin1'))),
    keep(bytes, body) {
      if (bytes.length > LONGEST) return;
      kept.set(bytes.toString('latin1'), body);
      const [oldest] = kept.size > BODIES ? kept.keys() : [];
      if (oldest !== undefined) kept.delete(oldest);
    },
  };
}
