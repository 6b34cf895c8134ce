/** Describes the answers of routes: each status, its schema and its examples. */
import { takesBody } from '../inputs.ts';
import type { Variant } from '../body.ts';
import type { Route } from '../compile.ts';
import { componentOf, named, type JsonSchema } from '../named.ts';
import { problem, problemCodes, PROBLEM_SCHEMA, PROBLEM_TYPE } from '../problem.ts';
import type { Code } from '../../core/errors.ts';

export type Responses = Readonly<Record<string, JsonSchema>>;

type ProblemStatus = { readonly name: string; readonly says: string; readonly example: readonly [Code, string] };

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
};

/** The problem responses by status, each a component of the document. */
const PROBLEMS: Readonly<Record<string, ProblemStatus>> = {
  400: {
    name: 'BadRequest',
    says: 'An input is missing, unknown or invalid; `errors` names each.',
    example: ['invalid_argument', 'limit: expected an integer, 1 to 1000'],
  },
  401: {
    name: 'Unauthorized',
    says: 'The token is missing, invalid or expired.',
    example: ['unauthenticated', 'A bearer token is needed.'],
  },
  403: {
    name: 'Forbidden',
    says: 'The token, a rule of the policy or a setting of the relay does not allow this.',
    example: ['forbidden', 'This path is for administrators only.'],
  },
  404: {
    name: 'NotFound',
    says: 'There is no such thing, or it belongs to another user.',
    example: ['not_found', 'There is no such thing, or it is not yours.'],
  },
  409: {
    name: 'Conflict',
    says: 'The state of the target does not allow this, or several targets fit the request.',
    example: ['not_connected', 'The client is not connected.'],
  },
  413: {
    name: 'PayloadTooLarge',
    says: 'The body or a payload is too large.',
    example: ['payload_too_large', 'A body may have at most 1048576 bytes.'],
  },
  415: {
    name: 'UnsupportedMediaType',
    says: 'The body is not JSON in UTF-8, or it is compressed.',
    example: ['unsupported_media_type', 'A body must be application/json in UTF-8, not compressed.'],
  },
  429: {
    name: 'TooManyRequests',
    says: 'A limit on rate, capacity or a share is reached.',
    example: ['rate_limited', 'Too many failed tokens from this address.'],
  },
  500: {
    name: 'InternalError',
    says: 'The relay failed; `id` is in its log.',
    example: ['internal', 'The relay failed; its log has the cause under the id 7c7bd5a4.'],
  },
  503: {
    name: 'Unavailable',
    says: 'The relay cannot do this now: its store does not answer, it is full, or the node is draining.',
    example: ['draining', 'This node admits no new commands.'],
  },
};

/** The component for each status that only the HTTP server itself sends, such as 408 and 431. */
const OTHER_PROBLEM = 'OtherProblem';

/** Returns the components that `problems` refers to, for these statuses. */
export function problemComponents(statuses: ReadonlySet<string>): Responses {
  const used = Object.entries(PROBLEMS).filter(([status]) => statuses.has(status));
  return {
    ...Object.fromEntries(used.map(([status, about]) => [about.name, problemComponent(Number(status), about)])),
    [OTHER_PROBLEM]: problemResponse('The HTTP server refused the request.', { schema: PROBLEM_SCHEMA }),
  };
}

function problemComponent(status: number, { says, example: [code, detail] }: ProblemStatus): JsonSchema {
  const own = { properties: { status: { const: status }, code: { enum: problemCodes(status) } } };
  const { body } = problem({ code, detail });
  return {
    ...problemResponse(says, { schema: { allOf: [PROBLEM_SCHEMA, own] }, example: body }),
    ...((status === 429 || status === 503) && { headers: RETRY_AFTER }),
    ...(status === 401 && { headers: { 'WWW-Authenticate': { schema: { const: 'Bearer' } } } }),
  };
}

/** Returns references to the problem responses of these statuses, and to the problem response of the HTTP server. */
export function problems(statuses: readonly string[]): Responses {
  const refer = (name: string): JsonSchema => ({ $ref: `#/components/responses/${name}` });
  const listed = statuses.map((status) => [status, refer(PROBLEMS[status]?.name ?? OTHER_PROBLEM)]);
  return { ...Object.fromEntries(listed), default: refer(OTHER_PROBLEM) };
}

/** Returns the statuses in PROBLEMS that the route can answer with. */
export function problemStatuses(route: Route): readonly string[] {
  const missing = route.mutates || route.body.nullable || namesSomething(route);
  return [
    ...['400', '401', '403'],
    ...(missing ? ['404'] : []),
    ...(route.mutates || mayBeAmbiguous(route) ? ['409'] : []),
    ...(takesBody(route) ? ['413', '415'] : []),
    ...['429', '500', '503'],
  ];
}

const INVOCATION = 'An admitted invocation, as its caller sees it. With its ids the command can be awaited again.';

/** Whether several clients may have the thing that the path names, so that a parameter names the client. */
function mayBeAmbiguous({ path, inputs }: Route): boolean {
  const client = [...inputs.values()].some(({ goesInto }) => goesInto === 'clientId');
  return client && path.includes('{') && !path.includes('{client_id}');
}

/** Whether a request can name something that does not exist, or that its requester may not see. */
function namesSomething({ path, access, inputs }: Route): boolean {
  const targets = [...inputs.values()].map(({ goesInto }) => goesInto);
  if (path.includes('{') || targets.includes('stream')) return true;
  return access !== 'ADMIN' && (targets.includes('userId') || targets.includes('owner'));
}

/** Returns the answers of a route. `examples`: an answer of a relay for each status. */
export function describeResponses(route: Route, examples: Readonly<Record<string, unknown>>): Responses {
  const successes =
    route.body.variants.length === 0 ? { '200': success('Found.', [route.body.schema]) } : describeVariants(route);
  const shown = Object.entries(successes).map(([status, response]) => [
    status,
    withExample(response, examples[status]),
  ]);
  return { ...Object.fromEntries(shown), ...problems(problemStatuses(route)) };
}

function describeVariants({ body: { variants }, waitsBy }: Route): Responses {
  const shapesOf = (kind: Variant['kind']) =>
    variants.filter((variant) => variant.kind === kind).map(({ schema }) => schema);
  const [members] = shapesOf('invocation').map((schema) => componentOf(schema)?.schema ?? schema);
  // Every type of invocation has the same members.
  const invocation = members && named('Invocation', { ...members, description: INVOCATION });
  const ended = [...(invocation ? [invocation] : []), ...shapesOf('plain')];
  const done = ended.length > 0 ? { '200': success('Done.', ended) } : {};
  if (!invocation) return done;
  const pending = 'The command has not ended: the awaited stage was reached, or the wait ended first.';
  const unknown = 'The end of the command is not known, or its deadline passed before it was written to its client.';
  const schema = named('CommandProblem', {
    description: 'A problem about a command, with the members of the command.',
    allOf: [
      PROBLEM_SCHEMA,
      { properties: { status: { const: 504 }, code: { enum: problemCodes(504) } } },
      { properties: members['properties'] },
    ],
  });
  return {
    ...done,
    '202': success(pending, [invocation]),
    '504': problemResponse(waitsBy === null ? unknown : `Only with \`${waitsBy}\`: ${unknown}`, { schema }),
  };
}

function success(description: string, schemas: readonly JsonSchema[]): JsonSchema {
  const [only] = schemas;
  const schema = schemas.length === 1 && only !== undefined ? only : { anyOf: schemas };
  return { description, content: { 'application/json': { schema } } };
}

function problemResponse(description: string, content: JsonSchema): JsonSchema {
  return { description, content: { [PROBLEM_TYPE]: content } };
}

function withExample(response: JsonSchema, example: unknown): JsonSchema {
  const [[type = '', media] = []] = Object.entries(response['content'] ?? {});
  return example === undefined ? response : { ...response, content: { [type]: { ...media, example } } };
}
