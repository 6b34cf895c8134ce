import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Fault } from '../core/errors.ts';
import { isCode, statusOf, type Code } from '../protocol/codes.ts';
import type { Body } from './body.ts';
import { isRecord } from './input.ts';
import type { Input } from './inputs.ts';
import { onlyItemRefusal, type ItemRefusal } from './item-refusal.ts';
import { snakeCase } from './names.ts';
import type { Explain } from './explain.ts';
import { detailOf, problem, type Answer, type Explained } from './problem.ts';

/** What a route needs to know to answer. */
export type Answering = {
  readonly body: Body;
  readonly inputs: ReadonlyMap<string, Input>;
  /** Given where the request's body was one value of those that it might have been a list of. */
  readonly onlyItem: ItemRefusal | null;
  /** The request waits for nothing: it reads the record of a command. */
  readonly reads: boolean;
};

const NOT_FOUND: Explained = { code: 'not_found', detail: 'There is no such thing, or it is not yours.' };

/**
 * The result of an execution as an answer. Any error makes the whole answer a problem: partial data is never sent. A null on the way to
 * the body is 404. A refused item that was sent alone is a problem. Where the body is a union or an interface, its type and outcome decide on the status.
 */
export function answerOf(answering: Answering, result: ExecutionResult, explain: Explain): Answer {
  const { errors } = result;
  if (errors && errors.length > 0) return problem(inWireNames(answering.inputs, firstOf(errors, explain)));
  let value: unknown = result.data;
  for (const name of answering.body.path) value = isRecord(value) ? value[name] : null;
  if (value === null || value === undefined) return problem(NOT_FOUND);
  const refusal = answering.onlyItem && onlyItemRefusal(answering.onlyItem, value);
  if (refusal) return problem(refusal);
  if (answering.body.variants.length === 0 || !isRecord(value)) return { status: 200, body: value };
  return variantAnswer(answering, value);
}

/** Every error is explained, so that each is in the log; what is wrong with the relay outweighs what is wrong with the request. */
function firstOf(errors: readonly GraphQLError[], explain: Explain): Explained {
  const all = errors.map((error) => explain(error));
  return all.find(({ code }) => code === 'internal') ?? all[0] ?? { code: 'internal', detail: 'The relay failed.' };
}

function variantAnswer({ body, reads }: Answering, value: Readonly<Record<string, unknown>>): Answer {
  const { __typename, ...members } = value;
  const kind = body.variants.find(({ name }) => name === __typename)?.kind ?? 'plain';
  if (kind === 'refusal') return refusalAnswer(members);
  return kind === 'invocation' ? invocationAnswer(members, reads) : { status: 200, body: members };
}

/** A refusal's own members beside code, message and delay are kept: they say who refused, and of which command. */
function refusalAnswer(members: Readonly<Record<string, unknown>>): Answer {
  const { code, message, retry_after_ms, share, ...command } = members;
  return problem({
    code: isCode(code) ? code : 'internal',
    detail: String(message),
    ...(typeof retry_after_ms === 'number' && { retryAfterMs: retry_after_ms }),
    ...(typeof share === 'string' && { share }),
    command,
  });
}

type Unproven = { readonly code: Code; readonly detail: string };
const UNKNOWN_END: Unproven = { code: 'response_timeout', detail: 'It may have run; no end of it is known.' };
const UNPROVEN: Readonly<Record<string, Unproven>> = {
  expired: { code: 'queue_timeout', detail: 'Its time ran out before it was written: it has not run.' },
  outcome_unknown: UNKNOWN_END,
};

/**
 * 202 while it has no outcome, otherwise 200: a failure that the client reported is an answer. Null, a problem: no end is known. For a request
 * that only reads the record there is no problem: the outcome is what it asked for.
 */
export function statusOfOutcome(outcome: unknown, reads: boolean): 200 | 202 | null {
  if (outcome === null) return 202;
  if (reads) return 200;
  return typeof outcome === 'string' && Object.hasOwn(UNPROVEN, outcome) ? null : 200;
}

/** 504 where no end is known to a request that waited for it. */
function invocationAnswer(members: Readonly<Record<string, unknown>>, reads: boolean): Answer {
  const { outcome, error } = members;
  const status = statusOfOutcome(outcome, reads);
  if (status !== null) return { status, body: members };
  const { code, message } = isRecord(error) ? error : {};
  const known = isCode(code) && statusOf(code) === 504;
  const unproven = UNPROVEN[String(outcome)] ?? UNKNOWN_END;
  return problem({
    ...(known ? { code, detail: String(message) } : unproven),
    status: 504,
    command: members,
  });
}

/** Resolvers name arguments as GraphQL does; the asker knows the parameter that went into it. */
function inWireNames(inputs: ReadonlyMap<string, Input>, explained: Explained): Explained {
  const { errors } = explained;
  if (!errors || errors.length === 0) return explained;
  const renamed = errors.map(({ parameter, detail }): Fault => ({ parameter: wireName(inputs, parameter), detail }));
  return { ...explained, errors: renamed, detail: detailOf(renamed) };
}

function wireName(inputs: ReadonlyMap<string, Input>, parameter: string): string {
  if (inputs.has(parameter)) return parameter;
  return [...inputs.values()].find(({ goesInto }) => goesInto === parameter)?.name ?? snakeCase(parameter);
}
