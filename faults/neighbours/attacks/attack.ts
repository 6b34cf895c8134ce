import type { Site } from '../site.ts';

/** What an attack is given. It runs until `signal` is aborted, counts what it did by name, and leaves what it holds to the end of its process. */
export type AttackContext = {
  readonly site: Site;
  readonly signal: AbortSignal;
  count(name: string, by?: number): void;
};

export type Attack = {
  readonly name: string;
  readonly says: string;
  readonly run: (context: AttackContext) => Promise<void>;
  /** File descriptors that the relay may have, where the attack aims at those. */
  readonly descriptors?: number;
};

/** Does this in so many lanes, one after the other in each, until the attack is over. What fails is counted and goes on. */
export async function inLanes(
  { signal, count }: AttackContext,
  lanes: number,
  act: (n: number) => Promise<void>,
): Promise<void> {
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      await act(n++).catch(async () => {
        count('failed');
        await pause(20);
      });
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** Waits until the attack is over, so that what it holds is held. */
export function held({ signal }: AttackContext): Promise<void> {
  return new Promise((done) => (signal.aborted ? done() : signal.addEventListener('abort', () => done())));
}
