/** Runs the verb `conformance`, which checks an author's own client against PROTOCOL.md. */
import { spawn } from 'node:child_process';
import { randomId } from '../../clients/link/ids.ts';
import type { Clock } from '../../clients/link/platform.ts';
import { ClaimFailure, NoVerdict, Trial, Peer, type ClientProgram, type StartProgram } from '../conformance/trial.ts';
import { OperatorFailure, usageFailure, EXIT } from '../exit-codes.ts';
import { readMs } from '../amounts.ts';
import type { RunVerb } from '../verb.ts';
import { COMMAND_CLAIMS, type ConformanceClaim } from '../conformance/claims-commands.ts';
import { ENDING_CLAIMS, FRAMES_CLAIM, HOLD_MS, OPENING_CLAIMS, returnClaims } from '../conformance/claims-links.ts';

/** The action with which a client is checked, unless `--action` names another one. */
const ACTION = 'conformance.echo';
const WITHIN_MS = 5_000;
/**
 * How long the client's program may take until its first hello, in milliseconds. Compilers and virtual machines take
 * long to start.
 */
const START_MS = 60_000;
/** How long to wait for a client that the author starts by hand, in milliseconds. */
const AUTHOR_MS = 600_000;
/** How much of the end of the client's output is shown if a claim fails, in characters. */
const TAIL_CHARS = 2_000;

export const conformance: RunVerb = async ({ io, clock, args, flags, lists, stopped }) => {
  const { action = ACTION, json, list } = flags;
  if (list !== undefined) return io.print(allClaims().map(listLine).join(''));
  const leftOut = lists['except'] ?? [];
  const unknown = leftOut.find((name) => !allClaims().some((claim) => claim.name === name));
  if (unknown !== undefined) throw usageFailure(`--except: there is no claim ${unknown}; see --list`);
  const token = randomId('conformance-');
  const results: ClaimResult[] = [];
  let url = '';
  let tail = '';
  const printed = (text: string): void => void (tail = (tail + text).slice(-TAIL_CHARS));
  const started: StartProgram = (changed) =>
    startProgram(args, { env: { ...io.env, RELAY: url, TOKEN: token }, printed, changed });
  const connected = await checkClient({
    clock,
    token,
    action,
    leftOut,
    stopped,
    port: readPort(flags['port']),
    withinMs: readMs(flags['within'], WITHIN_MS, '--within'),
    connectWithinMs: args.length > 0 ? START_MS : AUTHOR_MS,
    start: args.length > 0 ? started : null,
    onListening(address) {
      url = address;
      io.complain(instructions({ url, token, action, command: args }));
    },
    onResult(result) {
      results.push(result);
      if (json === undefined) io.print(resultLine(result));
    },
  }).catch(explain);
  const ok = connected && results.every(({ verdict }) => verdict !== 'fails');
  if (json === undefined && connected) io.print(summary(results));
  if (json !== undefined) io.print(`${JSON.stringify({ ok, claims: results })}\n`);
  if (!connected) io.complain('No client connected, or its first frame was no `hello` (PROTOCOL.md, section 3).\n');
  if (!ok && tail !== '') io.complain(`The client printed last:\n${tail.trimEnd()}\n`);
  return ok ? EXIT.done : EXIT.failed;
};

/** Throws the error again. If the port is taken, adds advice. */
function explain(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')
    throw new OperatorFailure(
      EXIT.failed,
      'port_in_use',
      'Another program listens on this port: choose another --port.',
    );
  throw error;
}

function readPort(text = '0'): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw usageFailure('--port: expected a number from 0 to 65535');
  return port;
}

type Instructions = {
  readonly url: string;
  readonly token: string;
  readonly action: string;
  readonly command: readonly string[];
};

function instructions({ url, token, action, command }: Instructions): string {
  return `The client connects to RELAY with TOKEN and advertises the action ${action}, which returns its params, an object.
Three members of the params steer it: "progress" (any value) is reported as progress; "wait_ms" (an integer) is how long
the handler waits then, unless it is stopped; "fail" (a text) makes the handler fail with this message.

RELAY=${url} TOKEN=${token}

${command.length > 0 ? `Both are in the environment of: ${command.join(' ')}` : 'Start the client now, with these two. (Or let this command start it, which checks more: callboard conformance -- <command>)'}

`;
}

// Starts the client under test in a process of its own.

type ProgramOptions = {
  /** The environment variables of the program, including RELAY and TOKEN. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives the program's output, and the reason if it could not be started. */
  readonly printed: (text: string) => void;
  /** Called when the program has ended. */
  readonly changed: () => void;
};

function startProgram(
  [name = '', ...args]: readonly string[],
  { env, printed, changed }: ProgramOptions,
): ClientProgram {
  const child = spawn(name, args, { env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const { promise, resolve } = Promise.withResolvers<void>();
  let ended = false;
  const end = (): void => {
    ended = true;
    resolve();
    changed();
  };
  child.on('error', ({ message }) => (printed(`${message}\n`), end()));
  child.on('exit', end);
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => printed(String(text)));
  // Signals go to the whole process group, because a wrapper such as npx or a shell does not pass them on.
  const signal = (name: NodeJS.Signals): void => {
    if (ended || child.pid === undefined) return;
    process.kill(-child.pid, name);
  };
  return {
    get ended() {
      return ended;
    },
    leave: () => signal('SIGTERM'),
    async kill() {
      signal('SIGKILL');
      await promise;
    },
  };
}

function listLine({ name, section, says, optional }: ReturnType<typeof allClaims>[number]): string {
  return `${name.padEnd(22)} section ${section}${optional === true ? ', optional' : ''}: ${says}\n`;
}

function resultLine({ name, section, says, optional, verdict, remark, expected, received, why }: ClaimResult): string {
  const about = `${name}${optional ? ' (optional)' : ''}: ${says}`;
  if (verdict === 'ok') return `ok       ${about}${remark === undefined ? '' : ` (${remark})`}\n`;
  if (verdict === 'unused' || verdict === 'not_run')
    return `${verdict === 'unused' ? 'unused ' : 'not run'}  ${about} (${why ?? ''})\n`;
  return `${verdict === 'fails' ? 'FAILS: ' : 'left out'} ${about}. Expected ${expected ?? ''}; received ${received ?? ''}. See PROTOCOL.md, section ${section}.\n`;
}

function summary(results: readonly ClaimResult[]): string {
  const count = (verdict: ClaimResult['verdict']): number =>
    results.filter((result) => result.verdict === verdict).length;
  const [ok, fails, unused] = [count('ok'), count('fails'), count('unused')];
  return `\n${results.length} claims: ${ok} ok, ${fails} failed, ${unused} of optional features that the client does not have, ${results.length - ok - fails - unused} not judged\n`;
}

/**
 * The result of a claim. `unused`: the client does not have this optional feature. `left_out`: the claim fails, but the
 * author excluded it. `not_run`: the claim could not be judged; `why` says why not.
 */
export type ClaimResult = Pick<ConformanceClaim, 'name' | 'section' | 'says'> & {
  readonly optional: boolean;
  readonly verdict: 'ok' | 'fails' | 'unused' | 'left_out' | 'not_run';
  readonly remark?: string;
  readonly expected?: string;
  readonly received?: string;
  readonly why?: string;
};

type CheckOptions = {
  readonly clock: Clock;
  readonly port: number;
  readonly token: string;
  readonly action: string;
  /** The time limit of each answer of the client, in milliseconds. */
  readonly withinMs: number;
  /** How long to wait for the client's first hello, in milliseconds. */
  readonly connectWithinMs: number;
  readonly start: StartProgram | null;
  /** A signal that ends the check when it is aborted. */
  readonly stopped: AbortSignal;
  /** The names of the claims that the author excluded. */
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
 * Opens an endpoint on 127.0.0.1 that acts as the relay, starts the client or waits for it, and checks all claims.
 * Resolves with whether a client has connected. Rejects if the port is taken, and with the reason of `stopped`.
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
