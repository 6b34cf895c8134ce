/**
 * Reads addresses such as `alice/kiosk` and the params of a call from a command's arguments, and asks for confirmation.
 */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { isRecord } from '../protocol/json.ts';
import { usageFailure } from './exit-codes.ts';
import type { OperatorRun } from './verb.ts';

/** The format of each kind of address, for error messages. */
const ADDRESSES = { 2: '<user>/<client>', 3: '<user>/<client>/<command>', site: '<owner>/<site>' } as const;

/**
 * Splits an address at its slashes. The third part is empty unless `parts` is 3. Throws a usage failure if the address
 * has another format.
 */
export function readAddress(address: string, parts: 2 | 3 | 'site'): readonly [string, string, string] {
  const [user = '', client = '', ...rest] = address.split('/');
  const command = rest.join('/');
  if (user === '' || client === '' || (parts === 3) === (command === ''))
    throw usageFailure(`expected ${ADDRESSES[parts]}, got "${address}"`);
  return [user, client, command];
}

/**
 * Reads the params of a call: from the file of `--params`, and from arguments such as `key:=json` and `key=text`, which
 * are added to them.
 */
export async function readParams(file: string | undefined, pairs: readonly string[]): Promise<unknown> {
  const given = file === undefined ? undefined : parse(await contentOf(file), '--params');
  if (pairs.length === 0) return given;
  if (given !== undefined && !isRecord(given)) throw usageFailure('--params: only an object can be added to');
  return { ...given, ...Object.fromEntries(pairs.map(readPair)) };
}

function readPair(pair: string): readonly [string, unknown] {
  const at = pair.indexOf('=');
  if (at < 1 || pair.startsWith(':=')) throw usageFailure(`expected key=text or key:=json, got "${pair}"`);
  const value = pair.slice(at + 1);
  if (pair[at - 1] !== ':') return [pair.slice(0, at), value];
  const key = pair.slice(0, at - 1);
  return [key, parse(value, key)];
}

async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin);
  return readFile(file, 'utf8').catch(() => {
    throw usageFailure(`--params: ${file} cannot be read`);
  });
}

function parse(json: string, name: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw usageFailure(`${name}: is not JSON`);
  }
}

/** Resolves if the operator gave `--yes`, or types `name` when asked. Rejects with a usage failure otherwise. */
export async function confirmed({ io, flags }: OperatorRun, what: string, name: string): Promise<void> {
  if (flags['yes'] !== undefined) return;
  if (!io.ask) throw usageFailure(`${what} needs --yes if the input is not a terminal`);
  const typed = await io.ask(`${what}. Type ${name} to go on: `);
  if (typed.trim() !== name) throw usageFailure('nothing was done: that is another name');
}
