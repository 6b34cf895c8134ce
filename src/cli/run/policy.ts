/**
 * Runs the verbs about a policy file: `policy check` checks it, and `policy diff` lists recent calls that it would
 * refuse.
 */
import { readFile } from 'node:fs/promises';
import { hash } from 'node:crypto';
import { ListDeliveryCommandsDocument, type ListDeliveryCommandsQuery } from '../../../generated/cli.ts';
import { policyDigest, scopeMapDigest } from '../../core/auth/live-policy.ts';
import { compilePolicy, type PolicyFile } from '../../core/auth/policy-file.ts';
import type { Policy } from '../../core/auth/policy.ts';
import { decideRecorded, rateOfRecorded, type RecordedCall } from '../../core/calls/permissions.ts';
import { TokenBucket, type BucketRate } from '../../core/rates.ts';
import { parsePolicyFile } from '../../settings/policy-file-format.ts';
import { messageOf } from '../io.ts';
import { usageFailure } from '../exit-codes.ts';
import { listText, objectText } from '../output.ts';
import { readTime } from '../amounts.ts';
import { sayWhatIsMissing, wholePage } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';

const sha256 = (text: string): string => hash('sha256', text, 'base64url');

/** Reads a policy file. Throws OperatorFailure with all faults in it. */
async function readPolicyFile({ args }: OperatorRun): Promise<PolicyFile> {
  const [path = ''] = args;
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usageFailure(`${path}: cannot be read: ${messageOf(error)}`);
  });
  const { policy, faults } = parsePolicyFile(text);
  if (policy !== null) return policy;
  throw usageFailure(
    faults.map(({ parameter, detail }) => `${path}: ${`${parameter}: `.replace(/^: /, '')}${detail}`).join('\n'),
  );
}

/** Prints a summary of a policy file, and the digest that nodes report when they run it. */
export const policyCheck: RunVerb = async (run) => {
  const file = await readPolicyFile(run);
  const { rules, scopes, rates = [], userCapacity } = file;
  const found = {
    digest: policyDigest(file, sha256),
    rules: rules.length,
    scopes: scopes.length,
    scope_map: scopeMapDigest(file, sha256),
    rates: rates.length,
    user_capacity: userCapacity,
  };
  run.io.print(objectText(found, run.output, { id: ['digest'] }));
  run.io.complain(SCOPES_MOVE_NOBODY);
};

/** A text for the operator, who must compare the scopes, because no relay reports which scopes it runs. */
const SCOPES_MOVE_NOBODY =
  'A running relay takes a file whose scopes have the ids and members that it runs: `policy check` prints the same scope_map for both files. Others take a restart, or another NAMESPACE if the store divides users by scope (STORE=owned, PARTITIONS above 1).\n';

const HOUR = '1h';
const PAGE_ROWS = 500;
/** The most calls that are read: the newest ones. */
const CALLS_MAX = 100_000;

type Row = ListDeliveryCommandsQuery['delivery']['commands']['items'][number];

/** The calls of one caller with one action about which the policy decides in the same way. */
type Difference = {
  /** `may_refuse`: the decision depends on other scopes of the token, which records do not contain. */
  readonly verdict: 'refuse' | 'may_refuse' | 'rate_limited';
  readonly by: string;
  readonly caller_kind: string;
  readonly caller: string;
  readonly user_id: string;
  readonly action: string;
  readonly calls: number;
  readonly last_admitted_at: string;
};

const COLUMNS = {
  shown: ['verdict', 'by', 'caller_kind', 'caller', 'user_id', 'action', 'calls', 'last_admitted_at'],
  id: ['verdict', 'user_id', 'action', 'caller_kind', 'caller'],
};

/**
 * Prints the recorded calls that a policy file would refuse. Only admitted calls have records, so calls that the file
 * would newly permit cannot be shown.
 */
export const policyDiff: RunVerb = async (run) => {
  const file = await readPolicyFile(run);
  const { rows, completeness, cut } = await readCalls(run);
  const differences = differencesOf(rows, compilePolicy(file));
  run.io.print(listText(wholePage(differences), run.output, COLUMNS));
  const refused = differences.reduce((sum, { calls }) => sum + calls, 0);
  run.io.complain(
    `${refused} of ${rows.length} recorded calls would be decided differently by the policy ${policyDigest(file, sha256)}. Calls that were refused have no record.\n`,
  );
  run.io.complain(SCOPES_MOVE_NOBODY);
  if (cut) run.io.complain(`Only the newest ${CALLS_MAX} calls were read.\n`);
  sayWhatIsMissing(run, { completeness });
};

/** Reads the calls since the given time, newest first. */
async function readCalls({ relay, flags, clock }: OperatorRun) {
  const since = readTime(flags['since'] ?? HOUR, '--since', clock);
  const rows: Row[] = [];
  for (let cursor: string | undefined; ;) {
    const variables = { admitted_after: since, order: 'newest' as const, cursor, limit: PAGE_ROWS };
    const { items, next_cursor, completeness } = (await relay.query(ListDeliveryCommandsDocument, variables)).delivery
      .commands;
    rows.push(...items);
    const cut = rows.length >= CALLS_MAX;
    if (next_cursor === null || cut)
      return { rows: rows.slice(0, CALLS_MAX), completeness, cut: cut && next_cursor !== null };
    cursor = next_cursor;
  }
}

/** Groups the calls that the policy would refuse, the largest groups first. `rows`: newest first. */
function differencesOf(rows: readonly Row[], policy: Policy): readonly Difference[] {
  const groups = new Map<string, Difference>();
  const buckets = new Map<string, ReplayedBucket>();
  // Buckets are refilled as time passes, so the calls are replayed from the oldest to the newest.
  for (const row of rows.toReversed()) {
    const found = decideRow(row, policy, buckets);
    if (found === null) continue;
    const { user_id, action, admitted_at } = row;
    const caller = { caller_kind: row.caller.kind, caller: row.caller.name };
    const key = JSON.stringify([found, caller, user_id, action]);
    const calls = (groups.get(key)?.calls ?? 0) + 1;
    groups.set(key, { ...found, ...caller, user_id, action, calls, last_admitted_at: admitted_at });
  }
  return [...groups.values()].sort((a, b) => b.calls - a.calls);
}

function decideRow(
  row: Row,
  policy: Policy,
  buckets: Map<string, ReplayedBucket>,
): Pick<Difference, 'verdict' | 'by'> | null {
  const clientType = row.client_type;
  const call: RecordedCall = { kind: row.caller.kind, userId: row.user_id, action: row.action, clientType };
  const { verdict, rules } = decideRecorded(policy, call);
  if (verdict !== 'pass') return { verdict: verdict === 'refuse' ? 'refuse' : 'may_refuse', by: rules.join(', ') };
  const rate = rateOfRecorded(policy, call);
  if (rate === null) return null;
  // A caller who is not an administrator acts in the name of the client's user.
  const key = JSON.stringify(call.kind === 'admin' ? [rate.rule, row.caller.name] : [rate.rule, null, row.user_id]);
  const bucket = buckets.get(key) ?? new ReplayedBucket(rate);
  buckets.set(key, bucket);
  return bucket.takeAt(Date.parse(row.admitted_at)) ? null : { verdict: 'rate_limited', by: rate.rule };
}

/** The rate bucket of a caller. Recorded calls take tokens from it at the times of their admission. */
class ReplayedBucket {
  readonly #bucket: TokenBucket;
  #at = 0;

  constructor(rate: BucketRate) {
    this.#bucket = new TokenBucket({ monotonic: () => this.#at }, rate);
  }

  /** Whether a call at this time (epoch milliseconds) gets a token. Call it with ascending times. */
  takeAt(at: number): boolean {
    this.#at = at;
    return this.#bucket.take() === 0;
  }
}
