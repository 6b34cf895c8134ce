/**
 * The contracts of actions that clients and callers share: their schemas, and the types that are derived from the
 * schemas.
 */

/** A JSON Schema 2020-12. If it is written `as const`, the types of params and results are derived from it. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** A schema of a library that implements standardschema.dev, such as zod, arktype or valibot. */
export type StandardSchema<Input = unknown, Output = unknown> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Present if the library can convert the schema to JSON Schema, as zod 4 and arktype can. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Readonly<Record<string, unknown>>;
    };
  };
};

export type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

export type StandardIssue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

export type ActionSchema = JsonSchema | StandardSchema;

/** The definition of an action: what is advertised about it, and what is checked locally. */
export type ActionSpec<S extends ActionSchema = ActionSchema, R extends ActionSchema = ActionSchema> = {
  /** One line for people and agents who choose between actions. */
  readonly summary?: string;
  /** Details that the summary does not mention. */
  readonly description?: string;
  /** A version of the program's own choice. The relay does not interpret it. */
  readonly version?: string;
  /**
   * The schema of the params: a JSON Schema 2020-12, or a schema of a library such as zod. If the params do not match,
   * the command is refused with `arguments_invalid`, before `authorize` and `approve` are called. The handler receives
   * the params as the library's schema converts them.
   */
  readonly schema?: S;
  /** The JSON Schema to advertise, if `schema` is a library's schema that cannot be converted to one. */
  readonly jsonSchema?: JsonSchema;
  /**
   * The schema of the result. It is not advertised. A result that does not match is not sent: the command fails with
   * `result_unavailable`, because it has already run.
   */
  readonly result?: R;
  /** Further facts about the action, as any JSON value. The whole advertisement may have at most 64 KiB. */
  readonly metadata?: unknown;
  /**
   * Whether only one command of this action may run at a time. While one runs, others are refused with `lease_busy`.
   * Default false.
   */
  readonly lease?: boolean;
  /**
   * The time limit of the handler, in milliseconds: 1 to 2147483647. At the limit, the handler's signal is aborted. If
   * the handler then stops, the command fails with `client_timeout`. The command's own deadline applies as well.
   * Absent: only the deadline applies.
   */
  readonly timeoutMs?: number;
  /**
   * Whether each command needs the consent of the `approve` callback. If the runtime has no such callback, commands of
   * this action are refused with `approval_denied`. Default false.
   */
  readonly approval?: boolean;
  /**
   * What the action does, as information for people and tools. It has no influence on how the action runs. An absent
   * member means that nothing is known. `idempotent`: running the action again with the same params changes nothing
   * more. `openWorld`: the action affects something outside the client.
   */
  readonly effects?: {
    readonly readOnly?: boolean;
    readonly destructive?: boolean;
    readonly idempotent?: boolean;
    readonly openWorld?: boolean;
  };
};

/** The contract of several actions, by their names. */
export type ActionSpecs = Readonly<Record<string, ActionSpec>>;

/**
 * Returns its argument, with the types of the schemas. A client passes each action to `handle`. A caller uses only the
 * type: `createHttpCaller<typeof actions>(options)`.
 */
export function defineActions<const A extends ActionSpecs>(actions: A): A {
  return actions;
}

// Types that are derived from schemas. A schema that is only known at run time gives no type.

/** The type of params about which nothing more is known. */
export type Params = Readonly<Record<string, unknown>>;

/**
 * The type of a value before a library's schema converts it: params as the caller sends them, or a result as the
 * handler returns it.
 */
export type InputOf<S> = TypesOf<S>['input'];
/**
 * The type of a value after a library's schema converted it: params as the handler receives them, or a result as the
 * caller receives it.
 */
export type OutputOf<S> = TypesOf<S>['output'];

type TypesOf<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer I; readonly output: infer O }
    ? { readonly input: I; readonly output: O }
    : { readonly input: unknown; readonly output: unknown }
  : { readonly input: FromJsonSchema<S>; readonly output: FromJsonSchema<S> };

/** `T`; `Params` if `T` is `unknown`. */
export type ParamsOr<T> = unknown extends T ? Params : T;

/** The type of the params with which a caller invokes an action of this contract. */
export type ParamsIn<A> = A extends { readonly schema: infer S } ? ParamsOr<InputOf<S>> : Params;
/** The type of the result that a caller gets from an action of this contract. */
export type ResultOf<A> = A extends { readonly result: infer R } ? OutputOf<R> : unknown;

/**
 * The type of the values that match a JSON Schema: the intersection of the types of its keywords. `unknown` for
 * keywords that types cannot express, such as `$ref`, `not` and `if`.
 */
export type FromJsonSchema<S> = S extends unknown
  ? Constant<S> & Typed<S> & OneOf<S, 'anyOf'> & OneOf<S, 'oneOf'> & AllOf<S>
  : never;

type Constant<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : unknown;

type Typed<S> = S extends { readonly type: infer T } ? Named<T extends readonly (infer N)[] ? N : T, S> : unknown;

type Named<N, S> = N extends 'string'
  ? string
  : N extends 'number' | 'integer'
    ? number
    : N extends 'boolean'
      ? boolean
      : N extends 'null'
        ? null
        : N extends 'array'
          ? ListOf<S>
          : N extends 'object'
            ? ObjectOf<S>
            : unknown;

type ListOf<S> = S extends { readonly prefixItems: unknown }
  ? readonly unknown[]
  : S extends { readonly items: infer I }
    ? readonly FromJsonSchema<I>[]
    : readonly unknown[];

type ObjectOf<S> = S extends { readonly properties: infer P }
  ? Flat<
      { readonly [K in keyof P as K extends RequiredIn<S> ? K : never]: FromJsonSchema<P[K]> } & {
        readonly [K in keyof P as K extends RequiredIn<S> ? never : K]?: FromJsonSchema<P[K]>;
      }
    >
  : S extends { readonly additionalProperties: infer A extends object }
    ? Readonly<Record<string, FromJsonSchema<A>>>
    : Params;

type RequiredIn<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;
type Flat<T> = { [K in keyof T]: T[K] };

type OneOf<S, K extends string> = S extends { readonly [N in K]: readonly (infer P)[] } ? FromJsonSchema<P> : unknown;

type AllOf<S> = S extends { readonly allOf: readonly [infer First, ...infer Rest] }
  ? FromJsonSchema<First> & AllOf<{ readonly allOf: Rest }>
  : unknown;
