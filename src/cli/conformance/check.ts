/** Checks one client against all claims, in their order. */
import type { Clock } from '../../clients/link/platform.ts';
import { COMMAND_CLAIMS, type ConformanceClaim } from './claims-commands.ts';
import { ENDING_CLAIMS, FRAMES_CLAIM, HOLD_MS, OPENING_CLAIMS, returnClaims } from './claims-links.ts';
import { Peer } from './peer.ts';
import { ClaimFailure, NoVerdict, Trial, type StartProgram } from './trial.ts';

/**
 * The result of a claim. `unused`: the client does not have an optional feature. `left_out`: it fails, and the author
 * asked not to count it. `not_run`: it cannot be judged; `why` says what is missing.
 */
export type ClaimResult = Pick<ConformanceClaim, 'name' | 'section' | 'says'> & {
  readonly optional: boolean;
  readonly verdict: 'ok' | 'fails' | 'unused' | 'left_out' | 'not_run';
  readonly remark?: string;
  readonly expected?: string;
  readonly received?: string;
  readonly why?: string;
};

export type CheckOptions = {
  readonly clock: Clock;
  readonly port: number;
  readonly token: string;
  readonly action: string;
  /** How long each answer of the client may take, in milliseconds. */
  readonly withinMs: number;
  /** How long to wait for the client's first hello, in milliseconds. */
  readonly connectWithinMs: number;
  readonly start: StartProgram | null;
  /** Ends the check when it is aborted. */
  readonly stopped: AbortSignal;
  /** The names of claims that do not count. */
  readonly leftOut: readonly string[];
  /** Called with the address of the endpoint, before the client starts. */
  readonly onListening: (url: string) => void;
  readonly onResult: (result: ClaimResult) => void;
};

/** Returns all claims, in the order in which they are checked. */
export function allClaims(): readonly ConformanceClaim[] {
  return [...OPENING_CLAIMS, ...COMMAND_CLAIMS, ...returnClaims(), ...ENDING_CLAIMS, FRAMES_CLAIM];
}

/**
 * Opens an endpoint on 127.0.0.1 that acts as the relay, starts the client or waits for it, and checks each claim.
 * Resolves with whether a client connected. Rejects if the port is taken, or with the reason of `stopped`.
 */
export async function checkClient(options: CheckOptions): Promise<boolean> {
  await using peer = await Peer.open(options);
  const trial = new Trial({ ...options, peer });
  try {
    options.onListening(peer.url);
    peer.admission = { holdMs: HOLD_MS };
    if (options.start) trial.start();
    const first = await trial.nextLink(options.connectWithinMs);
    if (!first) return false;
    await peer.until(() => (first.answered ? true : undefined), 2 * HOLD_MS);
    peer.admission = {};
    const judge = async (claim: ConformanceClaim): Promise<void> =>
      options.onResult(await resultOf(claim, trial, options.leftOut));
    for (const claim of [...OPENING_CLAIMS, ...COMMAND_CLAIMS]) {
      await trial.connected();
      await judge(claim);
    }
    await trial.connected();
    for (const claim of [...returnClaims(), ...ENDING_CLAIMS, FRAMES_CLAIM]) await judge(claim);
    return true;
  } finally {
    await trial.stop();
  }
}

async function resultOf(claim: ConformanceClaim, trial: Trial, leftOut: readonly string[]): Promise<ClaimResult> {
  const { name, section, says, optional = false } = claim;
  const about = { name, section, says, optional };
  try {
    const remark = await claim.check(trial);
    return { ...about, verdict: 'ok', ...(typeof remark === 'string' && { remark }) };
  } catch (error) {
    if (error instanceof NoVerdict) return { ...about, verdict: error.verdict, why: error.message };
    if (!(error instanceof ClaimFailure)) throw error;
    const { expected, received } = error;
    return { ...about, verdict: leftOut.includes(name) ? 'left_out' : 'fails', expected, received };
  }
}
