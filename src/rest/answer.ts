/** Converts the parsed result of an execution into a response. It sends nothing. */
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { InputError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { isCode, statusOf, type Code } from '../protocol/codes.ts';
import { snakeCase } from './forms.ts';
import type { Input } from './inputs.ts';
import { type ItemRefusal, onlyItemRefusal } from './item-refusal.ts';
import { detailOf, problem, type Answer, type Explain, type ProblemDetails } from './problem.ts';
import type { Body } from './response-body.ts';

/** What answering needs to know about a route and its request. */
export type Answering = {
  readonly body: Body;
  readonly inputs: ReadonlyMap<string, Input>;
  /** If the request sent a single item instead of a list: where the answer has that item's refusal. Otherwise null. */
  readonly onlyItem: ItemRefusal | null;
  /** Whether the request only reads the record of a command and does not wait for it. */
  readonly reads: boolean;
};

const NOT_FOUND: ProblemDetails = { code: 'not_found', detail: 'There is no such thing, or it is not yours.' };

/**
 * Converts the result of an execution into a response. If there is any error, the response is a problem, because
 * partial data is never sent. A null on the path to the body is a 404. If an item that was sent alone is refused, the
 * response is a problem too. For a union or interface, the concrete type and its outcome decide the status.
 */
export function answerOf(answering: Answering, result: ExecutionResult, explain: Explain): Answer {
  const { errors } = result;
  const [first] = errors ?? [];
  if (errors && first) return problem(inWireNames(answering.inputs, gravestOf(first, errors, explain)));
  let value: unknown = result.data;
  for (const name of answering.body.path) value = isRecord(value) ? value[name] : null;
  if (value === null || value === undefined) return problem(NOT_FOUND);
  const refusal = answering.onlyItem && onlyItemRefusal(answering.onlyItem, value);
  if (refusal) return problem(refusal);
  if (answering.body.variants.length === 0 || !isRecord(value)) return { status: 200, body: value };
  return variantAnswer(answering, value);
}

/**
 * Returns the most serious error, which is one with the code `internal` if there is any. All errors are converted,
 * because the conversion also logs them.
 */
function gravestOf(first: GraphQLError, errors: readonly GraphQLError[], explain: Explain): ProblemDetails {
  const all = errors.map((error) => explain(error));
  return all.find(({ code }) => code === 'internal') ?? explain(first);
}

function variantAnswer({ body, inputs, reads }: Answering, value: Readonly<Record<string, unknown>>): Answer {
  const { __typename, ...members } = value;
  const kind = body.variants.find(({ name }) => name === __typename)?.kind ?? 'plain';
  if (kind === 'refusal') return problem(inWireNames(inputs, explainRefusal(members)));
  if (kind === 'invocation') return invocationAnswer(members, reads);
  return { status: kind === 'created' ? 201 : 200, body: members };
}

/** The layers that every request passes. A problem does not name them, because its code already implies them. */
const LAYERS_OF_REQUESTS: ReadonlySet<unknown> = new Set(['token', 'address', 'arguments']);

/**
 * Converts a refusal into the members of a problem. Members that describe the refused command, such as `by`, are kept.
 */
function explainRefusal(members: Readonly<Record<string, unknown>>): ProblemDetails {
  const { code, message, retry_after_ms, share, errors, by, pause, ...command } = members;
  return {
    code: isCode(code) ? code : 'internal',
    detail: String(message),
    ...(Array.isArray(errors) && { errors }),
    ...(typeof retry_after_ms === 'number' && { retryAfterMs: retry_after_ms }),
    ...(typeof share === 'string' && { share }),
    command: {
      ...command,
      ...(isRecord(pause) && { pause }),
      ...(by !== undefined && !LAYERS_OF_REQUESTS.has(by) && { by }),
    },
  };
}

type Unproven = { readonly code: Code; readonly detail: string };
const UNKNOWN_END: Unproven = { code: 'response_timeout', detail: 'The command may have run; its end is not known.' };
const UNPROVEN: Readonly<Record<string, Unproven>> = {
  expired: {
    code: 'queue_timeout',
    detail: 'The deadline passed before the command was written to its client: it has not run.',
  },
  outcome_unknown: UNKNOWN_END,
};

/**
 * Returns the status for an outcome: 202 while there is none, otherwise 200, because a failure that the client reported
 * is a regular answer too. Null for the outcomes in UNPROVEN, whose response is a problem. If the request only reads
 * the record, every outcome has the status 200.
 */
export function statusOfOutcome(outcome: unknown, reads: boolean): 200 | 202 | null {
  if (outcome === null) return 202;
  if (reads) return 200;
  return typeof outcome === 'string' && Object.hasOwn(UNPROVEN, outcome) ? null : 200;
}

/**
 * Answers an invocation. If the request waited and the outcome is in UNPROVEN, the answer is a problem with the status
 * of its code, usually 504. Otherwise the answer is the invocation.
 */
function invocationAnswer(members: Readonly<Record<string, unknown>>, reads: boolean): Answer {
  const { outcome, error } = members;
  const status = statusOfOutcome(outcome, reads);
  if (status !== null) return { status, body: members };
  const { code, message } = isRecord(error) ? error : {};
  const known = isCode(code) && statusOf(code) >= 400 ? { code, detail: String(message) } : null;
  const end = known ?? UNPROVEN[String(outcome)] ?? UNKNOWN_END;
  return problem({ ...end, status: statusOf(end.code), command: members });
}

/**
 * Replaces the parameters in the faults that resolvers reported by their wire names, because resolvers know only the
 * names of GraphQL arguments.
 */
function inWireNames(inputs: ReadonlyMap<string, Input>, explained: ProblemDetails): ProblemDetails {
  const { errors } = explained;
  if (!errors || errors.length === 0) return explained;
  const renamed = errors.map(({ parameter, detail }): InputError => ({
    parameter: wireName(inputs, parameter),
    detail,
  }));
  return { ...explained, errors: renamed, detail: detailOf(renamed) };
}

function wireName(inputs: ReadonlyMap<string, Input>, parameter: string): string {
  if (inputs.has(parameter)) return parameter;
  return [...inputs.values()].find(({ goesInto }) => goesInto === parameter)?.name ?? snakeCase(parameter);
}
