/**
 * Lists all verbs of operators. The commands, their help, shell completion and the table of docs/cli.md are made from
 * it.
 */
import type { Verb } from '../verb.ts';
import { CALL_VERBS } from './calls.ts';
import { CLIENT_VERBS } from './clients.ts';
import { HISTORY_VERBS } from './history.ts';
import { LOCAL_VERBS } from './local.ts';
import { RELAY_VERBS } from './relay.ts';

export const VERBS: readonly Verb[] = [
  ...RELAY_VERBS,
  ...CLIENT_VERBS,
  ...CALL_VERBS,
  ...HISTORY_VERBS,
  ...LOCAL_VERBS,
];
