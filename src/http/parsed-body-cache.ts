const LONGEST = 16 * 1024;
const BODIES = 500;

/**
 * A cache of parsed bodies for repeated requests: at most 500 bodies of at most 16 KiB each; the oldest is evicted
 * first.
 */
export type ParsedBodyCache = {
  /** The body that was stored for these bytes, or undefined. */
  recall(bytes: Buffer): unknown;
  /** Stores a body. It must be the parsed form of these bytes, and nobody may change it afterwards. */
  keep(bytes: Buffer, body: unknown): void;
};

export function createParsedBodyCache(): ParsedBodyCache {
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
