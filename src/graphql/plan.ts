import {
  GraphQLError,
  Kind,
  execute,
  getOperationAST,
  valueFromASTUntyped,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { andThen, type Maybe } from '../core/maybe.ts';
import { createCost } from './cost.ts';
import { jitRefusal } from './jit.ts';

export type Variables = Readonly<Record<string, unknown>>;

/** How one operation of one document is run. Made once and kept with the document. */
export type Plan = {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** Who runs it, and why not graphql-jit. */
  readonly engine: 'jit' | 'js';
  readonly reason: string | null;
  /** It reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** It reads nothing but the schema and `__typename`. */
  readonly onlyMeta: boolean;
  /** The most that it may cost with these variables. Bad variables cost 0: running refuses them. */
  cost(variables: Variables): number;
  /**
   * Runs a query or a mutation. Never throws and never rejects: whatever fails stands in `errors`, unmasked. An answer without `data`
   * carries `extensions.http.status` 400 on its errors. `variables` are as the asker sent them.
   */
  run(context: unknown, variables: Variables | null | undefined): Maybe<ExecutionResult>;
};

export type Plans = {
  /** Null: the document has no such operation, or several and no name was given. The document must be valid. */
  of(document: DocumentNode, operationName?: string | null): Plan | null;
};

export type PlansOptions = {
  /** Compile at once instead of at the second run: for documents of our own, which are sure to come again. */
  readonly eager?: boolean;
};

/** The only way to execute a document. Plans live as long as their document. */
export function createPlans(schema: GraphQLSchema, { eager = false }: PlansOptions = {}): Plans {
  const plans = new WeakMap<OperationDefinitionNode, Plan>();
  return {
    of(document, operationName) {
      const operation = getOperationAST(document, operationName);
      if (!operation) return null;
      const plan = plans.get(operation) ?? createPlan({ schema, document, operation, eager });
      plans.set(operation, plan);
      return plan;
    },
  };
}

type Source = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
};
type Run = (context: unknown, variables: Variables) => Maybe<ExecutionResult>;

function createPlan({ eager, ...source }: Source & { eager: boolean }): Plan {
  const { schema, document, operation } = source;
  const reason = jitRefusal(schema, document, operation);
  const roots = rootFields(document, operation.selectionSet);
  const js = runByJs(source);
  return {
    operation: operation.operation,
    engine: reason === null ? 'jit' : 'js',
    reason,
    introspects: roots.has('__schema') || roots.has('__type'),
    onlyMeta: [...roots].every((name) => name.startsWith('__')),
    cost: createCost(schema, document, operation),
    run: settled(reason === null ? runByJit(source, { js, eager }) : js, operation),
  };
}

function rootFields(document: DocumentNode, root: SelectionSetNode): ReadonlySet<string> {
  const fields = new Set<string>();
  const seen = new Set<SelectionSetNode>();
  const collect = (set: SelectionSetNode): void => {
    if (seen.has(set)) return;
    seen.add(set);
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) fields.add(selection.name.value);
      else if (selection.kind === Kind.INLINE_FRAGMENT) collect(selection.selectionSet);
      else fragmentOf(document, selection.name.value).forEach(collect);
    }
  };
  collect(root);
  return fields;
}

function fragmentOf(document: DocumentNode, name: string): readonly SelectionSetNode[] {
  return document.definitions.flatMap((node) =>
    node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === name ? [node.selectionSet] : [],
  );
}

function runByJs({ schema, document, operation }: Source): Run {
  const operationName = operation.name?.value ?? null;
  return (contextValue, variableValues) =>
    execute({ schema, document, operationName, contextValue, variableValues, hideSuggestions: true });
}

/**
 * The first run of a document goes to graphql-js, so that documents which come only once cost no compilation. What jit refuses (bad
 * variables) graphql-js is asked again, since nothing ran yet and its words are the ones that clients know.
 */
function runByJit(source: Source, { js, eager }: { js: Run; eager: boolean }): Run {
  const defaults = variableDefaults(source.operation);
  let compiled: Run | null = eager ? compile(source, js) : null;
  let seen = false;
  return (context, variables) => {
    if (!compiled && !seen) {
      seen = true;
      return js(context, variables);
    }
    compiled ??= compile(source, js);
    const result = compiled(context, withDefaults(defaults, variables));
    return andThen(result, (answer) => ('data' in answer ? answer : js(context, variables)));
  };
}

function compile({ schema, document, operation }: Source, js: Run): Run {
  const compiled = compileQuery(schema, document, operation.name?.value);
  if (!isCompiledQuery(compiled)) return js;
  return (context, variables) => compiled.query({}, context, variables);
}

/** jit refuses an omitted variable of a non-null type, also where it has a default. */
function variableDefaults(operation: OperationDefinitionNode): ReadonlyMap<string, unknown> {
  const defaults = new Map<string, unknown>();
  for (const { variable, defaultValue } of operation.variableDefinitions ?? []) {
    if (defaultValue) defaults.set(variable.name.value, valueFromASTUntyped(defaultValue));
  }
  return defaults;
}

function withDefaults(defaults: ReadonlyMap<string, unknown>, variables: Variables): Variables {
  let filled: Record<string, unknown> | null = null;
  for (const [name, value] of defaults) {
    if (variables[name] === undefined) (filled ??= { ...variables })[name] = value;
  }
  return filled ?? variables;
}

/** One form for every failure: a thrown one becomes an error, and an answer without data says that the request was at fault. */
function settled(run: Run, operation: OperationDefinitionNode): Plan['run'] {
  const failed = (error: unknown): ExecutionResult => ({
    data: null,
    errors: [
      error instanceof GraphQLError ? error : new GraphQLError('Execution failed.', { originalError: asError(error) }),
    ],
  });
  return (context, variables) => {
    try {
      const answer = run(context, variables ?? {});
      if (answer instanceof Promise) return answer.then((result) => badRequest(result, operation), failed);
      return badRequest(answer, operation);
    } catch (error) {
      return failed(error);
    }
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function badRequest(result: ExecutionResult, operation: OperationDefinitionNode): ExecutionResult {
  if (!result.errors || 'data' in result) return result;
  const errors = result.errors.map(
    (error) =>
      new GraphQLError(error.message, {
        nodes: error.nodes ?? operation,
        originalError: error.originalError,
        extensions: { ...error.extensions, http: { status: 400, spec: true } },
      }),
  );
  return { errors };
}
