/** What a verb of the command line is: its place, its arguments and flags, and the function that runs it. */
import type { Clock } from '../../clients/link/clock.ts';
import type { Io } from '../io.ts';
import type { OperatorExit } from './failure.ts';
import type { Output } from './output.ts';
import type { OperatorRelay } from './relay.ts';

/** The help of a flag that takes a text, or what else the flag takes. */
export type Flag =
  | string
  | { readonly help: string; readonly values: readonly string[]; readonly many?: true }
  | { readonly help: string; readonly many: true; readonly values?: undefined }
  | { readonly help: string; readonly on: true };

/** The flags of all verbs that talk to a relay. */
export type SharedFlag = 'context' | 'url' | 'tokenFile' | 'tokenCommand';
export const SHARED_FLAGS: readonly SharedFlag[] = ['context', 'url', 'tokenFile', 'tokenCommand'];

/** What a verb gets. */
export type OperatorRun = {
  readonly io: Io;
  readonly clock: Clock;
  /** Opened when it is first used. Throws OperatorFailure if the flags and the environment name no relay and token. */
  readonly relay: OperatorRelay;
  readonly output: Output;
  /** The flags that take one value, by name; `true` for a switch that is given; undefined where not given. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** The flags that may be repeated, by name; undefined where not given. */
  readonly lists: Readonly<Record<string, string[] | undefined>>;
  readonly args: readonly string[];
  /** Aborted, with an OperatorFailure as reason, when the operator interrupts the command. */
  readonly stopped: AbortSignal;
};

/** Runs a verb. Without an exit code it is done. Throws OperatorFailure. */
export type RunVerb = (run: OperatorRun) => Promise<OperatorExit | void>;

export type Verb = {
  /** The words after `callboard`, such as `clients ls`. */
  readonly name: string;
  readonly brief: string;
  /** Its arguments in order. `name?` may be left out; `name...` may be repeated, and is the last one. */
  readonly args?: readonly string[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** Which of the shared flags it has. By default all. */
  readonly shared?: readonly SharedFlag[];
  /** False: it prints text of its own, so it has no `--output`. */
  readonly output?: false;
  /** Lines for its help, without `callboard`. */
  readonly examples?: readonly string[];
  /** Loads its code, which no other verb loads. */
  readonly load: () => Promise<RunVerb>;
};
