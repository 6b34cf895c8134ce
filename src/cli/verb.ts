/** Defines the type of an operator verb: its name, arguments, flags, and the function that runs it. */
import type { Clock } from '../clients/link/platform.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Io } from './io.ts';
import type { Output } from './output.ts';
import type { OperatorRelay } from './relay.ts';

/**
 * A flag of a verb: only a help text if its value is any text, and otherwise an object that says which values it takes.
 */
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

/** The input of the function that runs a verb. */
export type OperatorRun = {
  readonly io: Io;
  readonly clock: Clock;
  /**
   * The relay, which is opened when it is first used. Its requests reject with OperatorFailure, for example if there is
   * no token.
   */
  readonly relay: OperatorRelay;
  readonly output: Output;
  /** The flags with one value, by name: 'true' for a switch that is set, and undefined for an absent flag. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** The flags with several values, by name; undefined for an absent flag. */
  readonly lists: Readonly<Record<string, string[] | undefined>>;
  readonly args: readonly string[];
  /** A signal that is aborted when the operator interrupts the command. Its reason is an OperatorFailure. */
  readonly stopped: AbortSignal;
};

/** Runs a verb and returns its exit code; undefined means success. Throws OperatorFailure. */
export type RunVerb = (run: OperatorRun) => Promise<ExitCode | void>;

export type Verb = {
  /** The words after `callboard`, such as `clients ls`. */
  readonly name: string;
  readonly brief: string;
  /** The arguments of the verb, in order. `name?` is optional. `name...` is the last argument and may be repeated. */
  readonly args?: readonly string[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** The shared flags that the verb has. Absent: all of them. */
  readonly shared?: readonly (keyof typeof SHARED_FLAGS)[];
  /** False if the verb prints text in a format of its own, so that it has no flag `--output`. */
  readonly output?: false;
  /** Example lines for the help of the verb, without `callboard`. */
  readonly examples?: readonly string[];
  /** Loads the function that runs the verb, so that the code of other verbs is not loaded. */
  readonly load: () => Promise<RunVerb>;
};
