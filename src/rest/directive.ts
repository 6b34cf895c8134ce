/** The `@rest` directive: its definition, and how it is read from a document. */
import { Kind, type OperationDefinitionNode } from 'graphql';

/**
 * Who may use a route. This is checked before the rest of the request is read. It may restrict what the resolvers
 * allow, but never extend it.
 */
const ACCESSES = ['ADMIN', 'INVOKE', 'HOST', 'GRANT', 'ANY', 'OPEN'] as const;
export type Access = (typeof ACCESSES)[number];

const METHOD_OF = { get: 'GET', post: 'POST', put: 'PUT', delete: 'DELETE' } as const;
type MethodArgument = keyof typeof METHOD_OF;
export type Method = (typeof METHOD_OF)[MethodArgument];

/**
 * The directive as SDL. It is used only to validate documents: the served schema does not contain it, and execution
 * ignores it.
 */
export const REST_SDL = `
"Serves this operation as a route. Exactly one of get, post, put and delete names its path."
directive @rest(
  get: String
  post: String
  put: String
  delete: String
  "Who may use the route."
  access: RestAccess!
  "The path of the answer in the data, as names joined by dots. Default: the single root field."
  body: String
  "The variable that receives the whole request body, instead of one variable per member."
  bodyAs: String
  "Where bodyAs takes a list: the path to the answer's items and then the member that holds an item's refusal, joined by dots. When the request body is one value and not a list, that refusal is the answer."
  itemRefusal: String
  "The variable that makes the operation wait. A request without it only reads: a command that ended answers 200, whatever its outcome."
  waitsBy: String
  "The GraphQL field that answers a user, for a route that only administrators may use: names from Query down, joined by dots."
  forUsers: String
  "Whether a request that accepts \`text/event-stream\` gets an event stream with the progress of its command."
  streams: Boolean
  "Whether the request makes what the answer names: the answer is 201."
  creates: Boolean
) on QUERY | MUTATION
enum RestAccess { ${ACCESSES.join(' ')} }
`;

/** The `@rest` directive of one operation. REST_SDL describes each argument. */
export type RestDirective = {
  readonly method: Method;
  /** The path template, with `{name}` for each path parameter. */
  readonly path: string;
  readonly access: Access;
  readonly body: readonly string[] | null;
  readonly bodyAs: string | null;
  readonly itemRefusal: readonly string[] | null;
  readonly waitsBy: string | null;
  readonly forUsers: string | null;
  readonly streams: boolean;
  /** Whether the status is 201, because the request creates what the answer contains. */
  readonly creates: boolean;
};

/** Receives each fault of a document as text. Compilation goes on after it, to find further faults. */
export type ReportFault = (fault: string) => void;

const PATH = /^(\/([a-z0-9_.-]+|\{[a-z][a-z0-9_]*\}))+$/;

/** Reads the directive of an operation. Null if the operation cannot be a route; then the reason was reported. */
export function readDirective(operation: OperationDefinitionNode, report: ReportFault): RestDirective | null {
  const given = argumentsOf(operation);
  if (given === null) return (report('it has no @rest directive'), null);
  const methods = Object.keys(METHOD_OF).filter(isMethodArgument);
  const named = methods.filter((method) => given.has(method));
  const [method] = named;
  const access = ACCESSES.find((name) => name === given.get('access'));
  if (named.length !== 1 || method === undefined) report(`@rest needs exactly one of ${methods.join(', ')}`);
  const path = method === undefined ? '' : (given.get(method) ?? '');
  if (method !== undefined && !PATH.test(path)) report(`"${path}" is not a path of words and {parameters}`);
  if (access === undefined) report(`@rest needs access: one of ${ACCESSES.join(', ')}`);
  if (method === undefined || access === undefined) return null;
  const body = given.get('body')?.split('.') ?? null;
  const itemRefusal = given.get('itemRefusal')?.split('.') ?? null;
  const [bodyAs = null, waitsBy = null] = [given.get('bodyAs'), given.get('waitsBy')];
  const forUsers = given.get('forUsers') ?? null;
  if (forUsers !== null && access !== 'ADMIN') report('forUsers needs access: ADMIN');
  const streams = given.get('streams') === 'true';
  const creates = given.get('creates') === 'true';
  return { method: METHOD_OF[method], path, access, body, bodyAs, itemRefusal, waitsBy, forUsers, streams, creates };
}

/** Returns the names of a path's parameters, in path order. */
export function pathParameters(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
}

function argumentsOf(operation: OperationDefinitionNode): ReadonlyMap<string, string> | null {
  const directive = operation.directives?.find(({ name }) => name.value === 'rest');
  if (directive === undefined) return null;
  const given = new Map<string, string>();
  for (const { name, value } of directive.arguments ?? []) {
    if (value.kind === Kind.STRING || value.kind === Kind.ENUM) given.set(name.value, value.value);
    else if (value.kind === Kind.BOOLEAN) given.set(name.value, String(value.value));
  }
  return given;
}

function isMethodArgument(name: string): name is MethodArgument {
  return Object.hasOwn(METHOD_OF, name);
}
