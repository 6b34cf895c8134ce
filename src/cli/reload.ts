/**
 * Applies changed files of credentials, certificates and the policy while the relay runs. Other settings keep their
 * values.
 */
import { readFileSync } from 'node:fs';
import type { Callboard } from '../callboard.ts';
import { readConfig, type Config } from '../config.ts';
import { secretsIn } from '../config/auth-config.ts';
import { CallboardError, refuseInputs, type InputError } from '../core/errors.ts';
import type { Cancel, Clock } from '../core/ports.ts';
import type { RedactingLog } from '../platform/log.ts';
import type { Io } from './io.ts';

/**
 * The interval of reading the files, in milliseconds. They are not watched, because only reading detects every kind of
 * replacement, such as one by a symbolic link.
 */
const CHECK_MS = 5_000;

type ReloadOptions = {
  readonly callboard: Pick<Callboard, 'replaceCredentials' | 'replaceCertificate' | 'replaceRedisLogin' | 'policy'>;
  readonly env: Io['env'];
  readonly argv: readonly string[];
  readonly clock: Pick<Clock, 'every'>;
  readonly log: RedactingLog;
};

/**
 * Reads the files of the configuration every CHECK_MS. If one has changed, replaces the credentials, the certificate
 * and the policy. If the configuration is faulty, logs this and changes nothing until a file changes again. If only the
 * policy file is faulty, keeps the previous policy and replaces the rest. Does nothing if the configuration names no
 * files.
 */
export function reloadOnChange(started: Config, { callboard, env, argv, clock, log }: ReloadOptions): Cancel {
  if (started.files.length === 0) return () => {};
  let current = started;
  let seen = contentOf(started.files);
  const applyPolicy = (policy: Config['policy'], faults: readonly InputError[]): void => {
    try {
      refuseInputs(faults);
      callboard.policy.replace(policy);
    } catch (error) {
      callboard.policy.refuse(faultsIn(error));
    }
  };
  const apply = (next: Config): void => {
    log.redact(secretsIn(next));
    if (!next.generated) callboard.replaceCredentials(next.auth);
    if (next.tls) callboard.replaceCertificate(next.tls);
    const url = next.redis?.url;
    if (url !== undefined && url !== current.redis?.url && !callboard.replaceRedisLogin(url))
      log.warn({}, 'the Redis address has changed in more than its login: it is used after a restart');
    current = next;
    log.info({}, 'credentials and certificate were read again');
  };
  return clock.every(CHECK_MS, () => {
    const content = contentOf(started.files);
    if (content === seen) return;
    seen = content;
    try {
      const policyFaults: InputError[] = [];
      const next = readConfig(env, argv, policyFaults);
      apply(next);
      applyPolicy(next.policy, policyFaults);
    } catch (error) {
      log.error({ faults: faultsIn(error) }, 'the changed configuration is not valid; the one before stays in use');
    }
  });
}

function contentOf(paths: readonly string[]): string {
  return JSON.stringify(paths.map(textOf));
}

/** Returns the text of a file. Null if it cannot be read, for example because it is being replaced. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function faultsIn(error: unknown): string {
  if (error instanceof CallboardError) return error.message;
  throw error;
}
