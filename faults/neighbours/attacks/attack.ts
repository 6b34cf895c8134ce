/**
 * Defines the types of an attack of a hostile user, and the functions that all attacks use. The attacks are in the
 * other files of this folder.
 */
import type { Site } from '../site.ts';

/**
 * The context of an attack. An attack runs until `signal` is aborted, counts its actions by name, and holds its
 * resources until its process ends.
 */
export type AttackContext = {
  readonly site: Site;
  readonly signal: AbortSignal;
  count(name: string, by?: number): void;
};

export type Attack = {
  readonly name: string;
  readonly says: string;
  /** Stores what the attack needs, before the honest user is measured beside it. It takes a minute at most. */
  readonly prepare?: (context: AttackContext) => Promise<void>;
  readonly run: (context: AttackContext) => Promise<void>;
  /** The limit of open files that each relay starts with, for attacks that use up all descriptors. */
  readonly descriptors?: number;
  /** Settings of the relays, as variables of their environment, that differ from the defaults. */
  readonly env?: Readonly<Record<string, string>>;
};

/**
 * Repeats `act` in this many lanes until the attack is over. Within a lane, one run follows the other. Failures are
 * counted and do not stop it.
 */
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

/** Waits until the attack is over, so that the attack's resources stay held. */
export function held({ signal }: AttackContext): Promise<void> {
  return new Promise((done) => (signal.aborted ? done() : signal.addEventListener('abort', () => done())));
}
