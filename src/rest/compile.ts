/** Compiles the operation documents into routes, and reports every fault in them. Runs once, at start. */
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
import { CallboardError, type InputError } from '../core/errors.ts';
import type { Shape } from '../core/json-shape.ts';
import type { Plan, Plans } from '../graphql/execution/plan.ts';
import { findBody, withTypename, type Body } from './body.ts';
import { REST_SDL, readDirective, type ReportFault, type RestDirective } from './directive.ts';
import type { DocumentText } from './documents.ts';
import { findItemRefusal, type ItemRefusal } from './item-refusal.ts';
import { bodyShape, readInputs, type Input, type OperationSource } from './inputs.ts';
import { aroundBody, type Around } from './written.ts';

/** One operation of a document, compiled into a route. */
export type Route = Pick<RestDirective, 'method' | 'path' | 'access' | 'bodyAs' | 'waitsBy' | 'forUsers'> & {
  readonly id: string;
  readonly summary: string | null;
  /** Whether the operation is a mutation. A mutation may wait, and stops waiting when its caller hangs up. */
  readonly mutates: boolean;
  readonly inputs: ReadonlyMap<string, Input>;
  readonly bodyShape: Shape;
  readonly body: Body;
  readonly itemRefusal: ItemRefusal | null;
  /**
   * The JSON text before and after the body in the data. Null if that text is not fixed: the operation selects other
   * fields too, or a directive may omit the body.
   */
  readonly around: Around | null;
  readonly plan: Plan;
};

/**
 * Compiles documents into routes, each validated against the schema and compiled once. Throws `internal` with every
 * fault of every document, so a document that names what the schema lacks stops the start.
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

type Compiling = { readonly plans: Plans; readonly faults: InputError[] };

function compileRoute(schema: GraphQLSchema, document: DocumentNode, { plans, faults }: Compiling): Route | null {
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
  const { waitsBy } = directive;
  if (waitsBy !== null && !inputs.some(({ name }) => name === waitsBy))
    report(`waitsBy: there is no variable $${waitsBy}`);
  checkForUsers(schema, directive, report);
  const body = findBody(source, report);
  const itemRefusal = findItemRefusal(source, body, report);
  if (body === null || faults.length > before) return null;
  const plan = plans.of(withTypename(document, body), id);
  return plan && makeRoute(source, { id, inputs, body, itemRefusal, plan });
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

type Parts = Pick<Route, 'id' | 'body' | 'itemRefusal' | 'plan'> & { readonly inputs: readonly Input[] };

function makeRoute({ operation, directive }: OperationSource, parts: Parts): Route {
  const { id, inputs, body, itemRefusal, plan } = parts;
  const { method, path, access, bodyAs, waitsBy, forUsers } = directive;
  return {
    id,
    method,
    path,
    access,
    bodyAs,
    waitsBy,
    forUsers,
    summary: operation.description?.value ?? null,
    mutates: operation.operation === 'mutation',
    inputs: new Map(inputs.map((input) => [input.name, input])),
    bodyShape: bodyShape(inputs, bodyAs),
    body,
    itemRefusal,
    around: aroundBody(operation, body.path),
    plan,
  };
}

/**
 * Reports routes with the same method whose paths differ only in parameter names: only one of them could be reached.
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
