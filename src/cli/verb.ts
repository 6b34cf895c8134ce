/**
 * Defines the type of a verb of the command line: its words, its arguments and flags, and the function that runs it.
 */
import type { Clock } from '../clients/link/platform.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Io } from './io.ts';
import type { Output } from './output.ts';
import type { OperatorRelay } from './relay.ts';

/** One flag of a verb: its help text if it takes any text, otherwise an object that also says what it takes. */
export type Flag =
  | string
  | { readonly help: string; readonly values: readonly string[]; readonly many?: true }
  | { readonly help: string; readonly many: true; readonly values?: undefined }
  | { readonly help: string; readonly on: true };

/** The flags that are common to all verbs that talk to a relay, with their help texts. */
export const SHARED_FLAGS = {
  context: 'Name of the context to use (CALLBOARD_CONTEXT; default the current one)',
  url: 'Address of the relay (CALLBOARD_URL)',
  tokenFile: 'File with the token',
  tokenCommand: 'Shell command that prints the token',
};

/** What the function that runs a verb receives. */
export type OperatorRun = {
  readonly io: Io;
  readonly clock: Clock;
  /** The relay, opened when it is first used. Its requests reject with OperatorFailure, for example without a token. */
  readonly relay: OperatorRelay;
  readonly output: Output;
  /** The flags that take one value, by name: 'true' for a switch that is given, undefined for a flag that is not. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** The flags that take several values, by name; undefined for one that is not given. */
  readonly lists: Readonly<Record<string, string[] | undefined>>;
  readonly args: readonly string[];
  /** A signal that is aborted, with an OperatorFailure as reason, when the operator interrupts the command. */
  readonly stopped: AbortSignal;
};

/** Runs a verb and returns its exit code; no code means success. Throws OperatorFailure. */
export type RunVerb = (run: OperatorRun) => Promise<ExitCode | void>;

export type Verb = {
  /** The words after `callboard`, such as `clients ls`. */
  readonly name: string;
  readonly brief: string;
  /** The arguments of the verb in order. `name?` is optional. `name...` may be repeated, and is the last one. */
  readonly args?: readonly string[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** The shared flags that the verb has; by default all. */
  readonly shared?: readonly (keyof typeof SHARED_FLAGS)[];
  /** False if the verb prints text of its own, so that it has no `--output`. */
  readonly output?: false;
  /** Example lines for the help of the verb, without `callboard`. */
  readonly examples?: readonly string[];
  /** Loads the function that runs the verb. No other verb loads that code. */
  readonly load: () => Promise<RunVerb>;
};
