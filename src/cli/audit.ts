/** Runs the command `callboard audit verify`, which checks that no row of the audit was changed, moved or removed. */
import { readAuditFile } from '../backends/memory/audit.ts';
import { auditKeys } from '../callboard.ts';
import { readConfig } from '../config.ts';
import { ChainVerifier, type ChainReport, type UncheckedRows } from '../core/audit/audit-rows.ts';
import { CommandError, EXIT, UsageError, messageOf, splitFlags, type Io } from './io.ts';

/** Advice for rows whose key was not given: only the operator can tell whether the key's id is genuine. */
const UNKNOWN_KEY = 'If no key of yours ever had this id, these rows were forged or changed.';

/**
 * Verifies the chain of an audit file (`--file`, by default AUDIT_FILE or the one in DATA_DIR), or the chain of a running relay (`--url`, with
 * the token of an administrator in CALLBOARD_TOKEN). The audit keys come from the settings of the relay. Throws
 * CommandError with the first wrong row, or if the key of some rows is missing.
 */
export async function audit([, ...argv]: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--file', '--url'] });
  const config = readConfig(io.env, rest);
  // A secret that was generated for this run has signed nothing.
  const keys = auditKeys(config.generated ? { audit: config.audit, auth: { adminTokens: [] } } : config);
  if (keys.length === 0)
    throw new UsageError('CALLBOARD_AUDIT_KEY or CALLBOARD_SECRET: the key of the rows is required');
  const verifier = new ChainVerifier(keys);
  const url = own.get('--url');
  const file = own.get('--file') ?? config.audit.file ?? (await inDataDirectory(config.dataDir));
  if (url !== undefined) await addFromRelay(verifier, { url, token: io.env['CALLBOARD_TOKEN'] ?? '' });
  else if (file !== null) addFromFile(verifier, file, io);
  else throw new UsageError('--file or --url: one is required');
  printReport(verifier.report(), io);
}

async function inDataDirectory(dataDir: string | null): Promise<string | null> {
  const { DataDirectory } = await import('../backends/journal/files.ts');
  return dataDir === null ? null : new DataDirectory(dataDir).audit;
}

function addFromFile(verifier: ChainVerifier, path: string, io: Io): void {
  const { lines, torn } = readOrFail(path);
  for (const line of lines) verifier.add(line);
  if (torn.length > 0)
    io.print(`the last row is unfinished (${torn.length} bytes): the relay ended while it was written\n`);
}

function readOrFail(path: string): ReturnType<typeof readAuditFile> {
  try {
    return readAuditFile(path);
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${messageOf(error)}`);
  }
}

const CHAIN = 'query ($after: Int!) { auditChain(afterSeq: $after) { lines lastSeq } }';
/** The longest time that the relay may take to answer, in milliseconds. */
const ANSWER_MS = 30_000;

type AuditedRelay = { readonly url: string; readonly token: string };

async function addFromRelay(verifier: ChainVerifier, relay: AuditedRelay): Promise<void> {
  for (let after: number | null = 0; after !== null;) {
    const part: ChainPart = await readPart(relay, after);
    for (const line of part.lines) verifier.add(line);
    // A forged row may have a lower number than the rows before it. Reading on from it would never end.
    after = part.lastSeq !== null && part.lastSeq > after ? part.lastSeq : null;
  }
}

type ChainPart = { readonly lines: readonly string[]; readonly lastSeq: number | null };

async function readPart({ url, token }: AuditedRelay, after: number): Promise<ChainPart> {
  const answer = await fetch(`${url.replace(/\/$/, '')}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: CHAIN, variables: { after } }),
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch((error: unknown) => {
    throw new CommandError(`${url} does not answer (${messageOf(error)})`);
  });
  const text = await answer.text();
  const { data, errors } = parsed(text);
  if (!data?.auditChain)
    throw new CommandError(`${url} answers ${answer.status}: ${errors?.[0]?.message ?? text.slice(0, 200)}`);
  return data.auditChain;
}

type ChainAnswer = {
  readonly data?: { readonly auditChain?: ChainPart } | null;
  readonly errors?: readonly { readonly message: string }[];
};

function parsed(text: string): ChainAnswer {
  try {
    return JSON.parse(text) as ChainAnswer;
  } catch {
    return {};
  }
}

function printReport({ rows, firstSeq, lastSeq, lastMac, fault, unchecked }: ChainReport, io: Io): void {
  const missing = unchecked.map((part) => `${missingKey(part)}\n`).join('');
  if (fault) throw new CommandError(`The audit is broken. ${fault.message}\n${missing}`.trimEnd());
  if (missing !== '') throw new CommandError(`${missing}${verifiedRows(rows, unchecked)}${UNKNOWN_KEY}`, EXIT.unknown);
  if (rows === 0) return io.print('the audit has no rows\n');
  io.print(`${rows} rows verified, ${firstSeq} to ${lastSeq}; the last one ends with ${lastMac}\n`);
}

function missingKey({ key, rows, firstSeq, lastSeq }: UncheckedRows): string {
  const signed = `signed with a key that is not given (key id ${key}; set AUDIT_KEY to the key of that time)`;
  if (rows === 1) return `The audit cannot be checked in full: row ${firstSeq} is ${signed}.`;
  const which = rows === lastSeq - firstSeq + 1 ? 'rows' : `${rows} of the rows`;
  return `The audit cannot be checked in full: ${which} ${firstSeq} to ${lastSeq} are ${signed}.`;
}

function verifiedRows(rows: number, unchecked: readonly UncheckedRows[]): string {
  const verified = rows - unchecked.reduce((sum, part) => sum + part.rows, 0);
  return verified === 0 ? '' : `${verified} other rows were verified. `;
}
