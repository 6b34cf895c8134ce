/** Converts errors into what requesters may see. No internal message may reach a requester. */
import { GraphQLError, type ExecutionResult } from 'graphql';
import { CallboardError, internalMessage, isCode, type Code } from '../../core/errors.ts';
import type { Metrics } from '../../core/metrics.ts';
import type { Crypto, Log } from '../../core/ports.ts';

/**
 * The maximum length of a message that is shown; longer messages are cut. graphql-js prints the value that an error is
 * about, however large it is.
 */
const MESSAGE_CHARS = 1000;

/**
 * Converts an error into what the requester may see. The result for one error object is always the same object, so an
 * error is logged once.
 */
export type Mask = (error: unknown) => GraphQLError;

type MaskOptions = {
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  readonly crypto: Pick<Crypto, 'randomId'>;
};

/**
 * Creates the mask that converts every failure. The requester sees the code and message of a CallboardError, and errors
 * of graphql-js about the request itself. Every other error becomes `internal` with an id, which the log entry also
 * has.
 */
export function createMask({ log, metrics, crypto }: MaskOptions): Mask {
  const shown = new WeakMap<object, GraphQLError>();
  const mask: Mask = (error) => {
    const known = isObject(error) ? shown.get(error) : undefined;
    if (known) return known;
    const answer = passes(error) ?? explain(error) ?? hide(error, { log, metrics, crypto });
    if (isObject(error)) shown.set(error, answer);
    shown.set(answer, answer);
    return answer;
  };
  return mask;
}

export function maskAll(result: ExecutionResult, mask: Mask): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(mask) } : result;
}

/** Returns the CallboardError from which a GraphQL error was created; null if it was created from another error. */
export function callboardErrorOf(error: unknown): CallboardError | null {
  const origin = originOf(error);
  return origin instanceof CallboardError ? origin : null;
}

/**
 * Converts a CallboardError into a GraphQL error. An error that concerns the whole request (without a path) contains
 * its HTTP status.
 */
export function toGraphQLError(error: CallboardError, at: GraphQLError | null = null): GraphQLError {
  const { errors, retryAfterMs, command, share } = error.details;
  return new GraphQLError(error.message, {
    ...place(at),
    cause: error,
    extensions: {
      code: error.code,
      ...(errors && { errors }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(command && { command }),
      ...(share !== undefined && { share }),
      ...(at?.path ? {} : { http: httpOf(error) }),
    },
  });
}

/**
 * Returns the extensions of an error that set the response's status and headers. `spec`: a status of 400 is used only
 * for application/graphql-response+json, because application/json requires 200 instead. Other statuses, such as 401 and
 * 403, are used for both media types.
 */
function httpOf({ status, details: { retryAfterMs } }: CallboardError): object {
  const headers = {
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterMs !== undefined && { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
  };
  return { status, headers, ...(status === 400 && { spec: true }) };
}

function explain(error: unknown): GraphQLError | null {
  const known = callboardErrorOf(error);
  return known && toGraphQLError(known, error instanceof GraphQLError ? error : null);
}

/**
 * Returns the error if it is one of graphql-js that the requester may see: about a document, its variables or its
 * arguments. Otherwise returns null. An error with a path comes from execution. The requester may see such an error
 * only if it is about an argument, which graphql-js locates in the document. An error about a result would show the
 * result's value.
 */
function passes(error: unknown): GraphQLError | null {
  if (!(error instanceof GraphQLError)) return null;
  const origin = originOf(error);
  if (!(origin instanceof GraphQLError)) return null;
  const ofRequest = !error.path;
  const ofArgument = origin !== error && !origin.path && Boolean(origin.nodes?.length);
  return ofRequest || ofArgument ? coded(error) : null;
}

/**
 * Adds a code from the relay's list of error codes, and shortens the message. Errors about variables and arguments have
 * no code before, and Yoga's errors have codes of Yoga.
 */
function coded(error: GraphQLError): GraphQLError {
  const { message, extensions } = error;
  if (isCode(extensions['code']) && message.length <= MESSAGE_CHARS) return error;
  const code = isCode(extensions['code']) ? extensions['code'] : codeOfRequest(extensions['http']);
  return new GraphQLError(shortened(message), { ...place(error), extensions: { ...extensions, code } });
}

/**
 * Returns the code for an error without one: `method_not_allowed` for a mutation by GET, which is the only request with
 * a wrong method that reaches Yoga; `invalid_argument` otherwise.
 */
function codeOfRequest(http: unknown): Code {
  const status = isObject(http) && 'status' in http ? http.status : undefined;
  return status === 405 ? 'method_not_allowed' : 'invalid_argument';
}

/** Shortens a message of graphql-js to the length that may be shown. */
export function shortened(message: string): string {
  return message.length <= MESSAGE_CHARS ? message : `${message.slice(0, MESSAGE_CHARS).toWellFormed()}...`;
}

function hide(error: unknown, { log, metrics, crypto }: MaskOptions): GraphQLError {
  const id = crypto.randomId();
  const at = error instanceof GraphQLError ? error : null;
  log.error({ errorId: id, err: originOf(error), path: at?.path?.join('.') }, 'an error was masked');
  metrics?.count('errors_masked');
  return new GraphQLError(internalMessage(id), {
    ...place(at),
    extensions: { code: 'internal', id, ...(at?.path ? {} : { http: { status: 500 } }) },
  });
}

function place(at: GraphQLError | null): Pick<GraphQLError, 'nodes' | 'source' | 'positions' | 'path'> {
  return { nodes: at?.nodes, source: at?.source, positions: at?.positions, path: at?.path };
}

function originOf(error: unknown): unknown {
  let origin = error;
  for (let depth = 0; depth < 8 && origin instanceof GraphQLError && origin.cause; depth++) {
    origin = origin.cause;
  }
  return origin;
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
