/**
 * Compiles the operation documents into routes at start, and reports every fault in them; finds the route of a path,
 * and checks who may use it.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import findMyWay from 'find-my-way';
import {
  GraphQLError,
  Kind,
  Source,
  concatAST,
  extendSchema,
  getNamedType,
  isObjectType,
  parse,
  separateOperations,
  validate,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import { requireAdmin, requirePrincipal, requireScope, requireUser, type Principal } from '../core/auth/principal.ts';
import { CallboardError, fail, type InputError } from '../core/errors.ts';
import type { Shape } from '../core/json.ts';
import type { Plan, Plans } from '../graphql/execute/executor.ts';
import { findItemRefusal, type ItemRefusal } from './item-refusal.ts';
import { findBody, withTypename, type Body } from './response-body.ts';
import { aroundBody, type Around } from './written-answer.ts';
import {
  REST_SDL,
  readDirective,
  type Access,
  type Method,
  type ReportFault,
  type RestDirective,
} from './directive.ts';
import { bodyShape, readInputs, type Input, type OperationSource } from './inputs.ts';

/** One operation of a document, compiled into a route. */
export type Route = Pick<
  RestDirective,
  'method' | 'path' | 'access' | 'bodyAs' | 'waitsBy' | 'forUsers' | 'streams'
> & {
  readonly id: string;
  readonly summary: string | null;
  /** Whether the operation is a mutation. Only mutations may wait, and they stop waiting when the caller hangs up. */
  readonly mutates: boolean;
  readonly inputs: ReadonlyMap<string, Input>;
  readonly bodyShape: Shape;
  readonly body: Body;
  readonly itemRefusal: ItemRefusal | null;
  /** The fixed JSON text around the body in the data; null if that text is not fixed. */
  readonly around: Around | null;
  readonly plan: Plan;
};

/**
 * Compiles documents into routes. Each document is validated against the schema and compiled once. Throws `internal`
 * with all faults of all documents, so that the relay does not start if a document uses something that the schema does
 * not have.
 */
export function compileRoutes(
  schema: GraphQLSchema,
  documents: readonly DocumentText[],
  plans: Plans,
): readonly Route[] {
  const faults: InputError[] = [];
  const whole = concatAST(documents.map((document) => parseDocument(document, faults)));
  const withRest = extendSchema(schema, parse(REST_SDL));
  for (const error of validate(withRest, whole, undefined, { maxErrors: 1000 })) faults.push(faultOf(error));
  const sound = faults.length === 0;
  const sources = Object.values(separateOperations(whole)).filter(
    (one) => sound || validate(withRest, one).length === 0,
  );
  const routes = sources.flatMap((document) => compileRoute(schema, document, { plans, faults }) ?? []);
  findTwins(routes, faults);
  if (faults.length > 0) {
    const lines = faults.map(({ parameter, detail }) => `\n  ${parameter}: ${detail}`);
    throw new CallboardError('internal', `The REST documents do not fit the schema:${lines.join('')}`, {
      errors: faults,
    });
  }
  return routes;
}

function parseDocument({ name, text }: DocumentText, faults: InputError[]): DocumentNode {
  try {
    return parse(new Source(text, name));
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    faults.push(faultOf(error));
    return { kind: Kind.DOCUMENT, definitions: [] };
  }
}

function faultOf(error: GraphQLError): InputError {
  const { source, locations, nodes } = error;
  const line = locations?.[0]?.line;
  const name = source?.name ?? nodes?.[0]?.loc?.source.name ?? 'documents';
  return { parameter: line === undefined ? name : `${name}:${line}`, detail: error.message };
}

function compileRoute(
  schema: GraphQLSchema,
  document: DocumentNode,
  { plans, faults }: { readonly plans: Plans; readonly faults: InputError[] },
): Route | null {
  const operation = document.definitions.find((one) => one.kind === Kind.OPERATION_DEFINITION);
  const id = operation?.name?.value;
  const file = operation?.loc?.source.name ?? 'documents';
  const before = faults.length;
  const report: ReportFault = (detail) => void faults.push({ parameter: `${file} ${id ?? '(unnamed)'}`, detail });
  if (operation === undefined || id === undefined) return (report('an operation needs a name'), null);
  const directive = readDirective(operation, report);
  if (directive === null) return null;
  const source: OperationSource = { schema, document, operation, directive };
  const inputs = readInputs(source, report);
  const { waitsBy, bodyAs } = directive;
  if (waitsBy !== null && !inputs.some(({ name }) => name === waitsBy))
    report(`waitsBy: there is no variable $${waitsBy}`);
  checkForUsers(schema, directive, report);
  const body = findBody(source, report);
  const itemRefusal = findItemRefusal(source, body, report);
  if (body === null || faults.length > before) return null;
  const plan = plans.of(withTypename(document, body), id);
  return (
    plan && {
      ...directive,
      id,
      body,
      itemRefusal,
      plan,
      summary: operation.description?.value ?? null,
      mutates: operation.operation === 'mutation',
      inputs: new Map(inputs.map((input) => [input.name, input])),
      bodyShape: bodyShape(inputs, bodyAs),
      around: aroundBody(operation, body.path),
    }
  );
}

/** Reports a fault if `forUsers` names a field that the schema does not have. */
function checkForUsers(schema: GraphQLSchema, { forUsers }: RestDirective, report: ReportFault): void {
  let type: unknown = schema.getQueryType();
  for (const name of forUsers?.split('.') ?? []) {
    const field = isObjectType(type) ? type.getFields()[name] : undefined;
    if (field === undefined) return report(`forUsers: the schema has no field ${forUsers}`);
    type = getNamedType(field.type);
  }
}

/**
 * Reports routes of one method whose paths differ only in parameter names, because only one of them could be reached.
 */
function findTwins(routes: readonly Route[], faults: InputError[]): void {
  const seen = new Map<string, Route>();
  for (const route of routes) {
    const key = `${route.method} ${route.path.replaceAll(/\{\w+\}/g, '{}')}`;
    const twin = seen.get(key);
    if (twin) faults.push({ parameter: route.id, detail: `has the same method and path as ${twin.id}` });
    seen.set(key, route);
  }
}

/** The text of one file of operations; `name` is the file name. */
export type DocumentText = { readonly name: string; readonly text: string };

/** Reads the operation documents that ship with callboard. Each operation in them becomes a route. */
export function readOperations(folder: string = join(import.meta.dirname, 'operations')): readonly DocumentText[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.graphql'));
  return names.sort().map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
}

/**
 * The checks of access, which run before the rest of a request is read. Whether a grant covers a session is checked
 * later, by resolvers.
 */
const CHECKS: Readonly<Record<Access, (requester: Principal | null) => void>> = {
  ADMIN: requireAdmin,
  INVOKE: (requester) => requireScope(requester, 'invoke'),
  HOST: (requester) => requireUser(requester, 'host'),
  GRANT: requirePrincipal,
  ANY: requirePrincipal,
  OPEN: () => {},
};

/** Who may use a route, and the GraphQL field that answers users in its place. */
type RouteAccess = Pick<RestDirective, 'access' | 'forUsers'>;

/**
 * Throws `unauthenticated` or `forbidden` if the requester may not use the route. If a user requests a route for
 * administrators, the message names the GraphQL field for users, if there is one.
 */
export function checkAccess({ access, forUsers }: RouteAccess, requester: Principal | null): void {
  if (access === 'ADMIN' && requester?.kind === 'user') fail('forbidden', accessWords({ access, forUsers }));
  CHECKS[access](requester);
}

/** Returns a sentence about who may use a route, for the OpenAPI document. */
export function accessWords({ access, forUsers }: RouteAccess): string {
  const words = ACCESS_WORDS[access];
  return forUsers === null ? words : `${words} GraphQL answers users about their own data: field \`${forUsers}\`.`;
}

export const ACCESS_WORDS: Readonly<Record<Access, string>> = {
  ADMIN: 'This path is for administrators only.',
  INVOKE: 'Users with the scope `invoke`, for their own resources, and administrators.',
  HOST: 'Users with the scope `host`, for their own resources.',
  GRANT: 'The holder of a grant, within that grant, and the owner.',
  ANY: 'Every requester with a valid token.',
  OPEN: 'Everybody, without a token. Requests are limited for each address.',
};

/** The routes of one path, by method. `template`: the path with its parameters. `allow`: the `Allow` header. */
type Resource = {
  readonly template: string;
  readonly routes: ReadonlyMap<string, Route>;
  readonly allow: string;
};
/** A resource with the values of the path parameters, still percent-encoded. */
export type Match = { readonly resource: Resource; readonly path: Readonly<Record<string, string | undefined>> };

/**
 * The maximum length of a path parameter. It exceeds the longest request line that node:http accepts, so the router
 * never refuses a parameter for its length. The readers of inputs check the length.
 */
const LONGEST_PARAMETER = 100_000;

/**
 * Returns a function that finds the resource of a path, whatever the method. No route has a path that ends with a
 * slash.
 */
export function createRouter(routes: readonly Route[]): (path: string) => Match | null {
  const router = findMyWay({ maxParamLength: LONGEST_PARAMETER });
  for (const [template, routesOfPath] of Map.groupBy(routes, ({ path }) => path)) {
    router.on('GET', template.replaceAll(/\{(\w+)\}/g, ':$1'), () => {}, resourceOf(template, routesOfPath));
  }
  return (path) => {
    // Without this check, the router would match `/users/` with an empty parameter.
    if (path.endsWith('/')) return null;
    // The router would reject malformed percent-encoding without naming the parameter. So every `%` is encoded once
    // more, and each reader of an input gets its parameter still encoded.
    const found = router.find('GET', path.includes('%') ? path.replaceAll('%', '%25') : path);
    if (found === null) return null;
    const resource: Resource = found.store;
    return { resource, path: found.params };
  };
}

function resourceOf(template: string, routesOfPath: readonly Route[]): Resource {
  const routes = new Map<string, Route>(routesOfPath.map((route) => [route.method, route]));
  const get = routes.get('GET' satisfies Method);
  if (get) routes.set('HEAD', get);
  return { template, routes, allow: [...routes.keys()].join(', ') };
}
