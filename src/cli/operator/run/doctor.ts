/**
 * Runs the verb `doctor`: checks everything between this machine and a working relay, and prints one line for each
 * check.
 */
import { GetServerDocument, type GetServerQuery } from '../../../generated/cli.ts';
import { VERSION } from '../../../version.ts';
import { contextsPath, readContexts } from '../contexts-file.ts';
import { OPERATOR_EXIT, OperatorFailure, type OperatorExit } from '../failure.ts';
import { listText } from '../output.ts';
import { readReport } from '../report.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';

type Verdict = 'ok' | 'warning' | 'fault';
type Check = { readonly check: string; readonly verdict: Verdict; readonly detail: string };
type Checked = { readonly checks: readonly Check[]; readonly exit: OperatorExit };

const COLUMNS = { shown: ['check', 'verdict', 'detail'], id: ['check'] };
/** The remaining lifetime of a token below which `doctor` warns, in milliseconds. */
const EXPIRES_SOON_MS = 600_000;

/**
 * Runs the checks and exits with the code of the first fault. Each check needs the checks before it, so the first fault
 * ends the run.
 */
export const doctor: RunVerb = async (run) => {
  const checks: Check[] = [];
  const exit = await check(run, checks).catch((error: unknown) => {
    if (!(error instanceof OperatorFailure)) throw error;
    checks.push({ check: nameOf(error), verdict: 'fault', detail: `${error.code}: ${error.message}` });
    return error.exit;
  });
  const page = { items: checks, next_cursor: null, completeness: { complete: true, sources: [] } };
  run.io.print(listText(page, run.output, COLUMNS));
  return exit;
};

async function check(run: OperatorRun, checks: Check[]): Promise<OperatorExit> {
  const { relay, io, clock } = run;
  const note = (name: string, detail: string, verdict: Verdict = 'ok'): void =>
    void checks.push({ check: name, verdict, detail });
  const { contexts } = await readContexts(io.env);
  note('contexts', `${Object.keys(contexts).length} in ${contextsPath(io.env)}`);
  const { url, urlFrom, token, tokenFrom } = await relay.settings();
  note('address', `${url} (${urlFrom})`, isExposed(url) ? 'warning' : 'ok');
  await token();
  note('token source', String(tokenFrom));
  const { status } = await relay.request('/readyz', { repeatable: false });
  note(
    'relay',
    status === 200 ? 'ready' : `answers, and takes no new work (HTTP ${status})`,
    status === 200 ? 'ok' : 'warning',
  );
  const answer = await relay.query(GetServerDocument, {});
  const { checks: known, exit } = serverChecks(answer, clock.now());
  checks.push(...known);
  if (answer.viewer.kind !== 'admin') return exit;
  const { needs_attention: faults } = await readReport(relay);
  note(
    'deployment',
    faults.length === 0 ? 'nothing needs attention' : faults.join('; '),
    faults.length === 0 ? 'ok' : 'fault',
  );
  return faults.length === 0 ? exit : OPERATOR_EXIT.unexpected;
}

function serverChecks({ server, viewer }: GetServerQuery, now: number): Checked {
  const { kind, user_id, scopes, expires_at } = viewer;
  const who = kind === 'admin' ? 'an administrator' : `the user ${user_id} (${scopes.join(', ') || 'no scopes'})`;
  const left = expires_at === null ? Infinity : Date.parse(expires_at) - now;
  const same = server.version === VERSION;
  return {
    exit: OPERATOR_EXIT.done,
    checks: [
      {
        check: 'token',
        verdict: left < EXPIRES_SOON_MS ? 'warning' : 'ok',
        detail: `${who}${expires_at === null ? '' : `, until ${expires_at}`}`,
      },
      {
        check: 'version',
        verdict: same ? 'ok' : 'warning',
        detail: same ? VERSION : `the relay is ${server.version}, this command line ${VERSION}`,
      },
    ],
  };
}

/** Whether the token would travel in plain HTTP to another machine, where others could read it on the way. */
function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !['127.0.0.1', '[::1]', 'localhost'].includes(hostname);
}

function nameOf({ exit }: OperatorFailure): string {
  if (exit === OPERATOR_EXIT.usage) return 'settings';
  if (exit === OPERATOR_EXIT.notAllowed) return 'token';
  return 'relay';
}
