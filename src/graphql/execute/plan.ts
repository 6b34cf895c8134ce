/** Compiles the operations of a document once, and caches the result. It executes nothing itself. */
import { getOperationAST, type DocumentNode, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import { createVariablesReader, VariablesText, type GivenVariables } from '../variables/request-variables.ts';
import { BoundedMap } from '../../core/bounded-map.ts';
import { createJsonCaches, type JsonCaches } from '../writer/json-cache.ts';
import { createBinder, type Bound } from './bound.ts';
import { rootFields } from './plan-roots.ts';

/** How one operation of one document is executed. Created once and kept as long as the document. */
export type Plan = {
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** Whether the operation reads the schema (`__schema` or `__type`). */
  readonly introspects: boolean;
  /** Whether the operation reads only the schema and `__typename`. */
  readonly onlyMeta: boolean;
  /**
   * Returns the operation with the variables of a request, as the requester sent them. Throws `invalid_argument`. A
   * query whose variables have the same text as before is not bound again.
   */
  bind(given: GivenVariables): Bound;
};

export type Plans = {
  /**
   * Returns the plan of an operation. Null when the document has no such operation, or has several and no name was
   * given. The document must be valid.
   */
  of(document: DocumentNode, operationName?: string | null): Plan | null;
};

export type PlansOptions = {
  /**
   * Whether results may be written as JSON text without graphql-js. Default true. If false, `write` always returns
   * null.
   */
  readonly fast?: boolean;
  /**
   * Whether the JSON text of entities is cached. Default true. Use false for a store that creates new entities at each
   * read, because the cache would never hit.
   */
  readonly keep?: boolean;
};

/**
 * The most characters of JSON text that all plans of one schema cache together. A character takes at most two bytes.
 */
const FRAGMENT_CHARS = 32 * 1024 * 1024;

/**
 * The most bound queries that all plans of one schema keep together, and the longest text of variables that is kept.
 */
const BOUND = { most: 500, longest: 4096 };

/**
 * Creates the plans of a schema. Every query and mutation is executed through a plan; a plan lives as long as its
 * document.
 */
export function createPlans(schema: GraphQLSchema, { fast = true, keep = true }: PlansOptions = {}): Plans {
  const fragments = keep ? createJsonCaches(FRAGMENT_CHARS) : null;
  const bound = new BoundedMap<string, Bound>({ most: BOUND.most, order: 'used' });
  const plans = new WeakMap<OperationDefinitionNode, Plan>();
  let number = 0;
  const create = (source: Source): Plan => createPlan(source, { fast, fragments, bound, number: number++ });
  return {
    of(document, operationName) {
      const operation = getOperationAST(document, operationName);
      if (!operation) return null;
      let plan = plans.get(operation);
      if (!plan) plans.set(operation, (plan = create({ schema, document, operation })));
      return plan;
    },
  };
}

type Source = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
};
type PlanParts = {
  readonly fast: boolean;
  readonly fragments: JsonCaches | null;
  /** The bound queries, by the number of their plan and the text of their variables. */
  readonly bound: BoundCache;
  readonly number: number;
};
type BoundCache = BoundedMap<string, Bound>;

function createPlan(source: Source, { bound, number, ...parts }: PlanParts): Plan {
  const { schema, document, operation } = source;
  const roots = rootFields(document, operation.selectionSet);
  const read = createVariablesReader(schema, operation);
  const binder = createBinder({ ...source, fragments: parts.fragments }, parts);
  const isQuery = operation.operation === 'query';
  return {
    operation: operation.operation,
    introspects: roots.has('__schema') || roots.has('__type'),
    onlyMeta: [...roots].every((name) => name.startsWith('__')),
    bind(given) {
      if (!isQuery || !(given instanceof VariablesText)) return binder(read(given));
      const key = `${number} ${given.text}`;
      const known = bound.get(key);
      if (known) return known;
      const made = binder(read(given));
      if (key.length <= BOUND.longest) bound.set(key, made);
      return made;
    },
  };
}
