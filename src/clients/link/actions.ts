/** The contracts of actions, which clients and callers share: schemas, and the types that follow from them. */

/** A JSON Schema 2020-12. Written `as const`, it gives the types of params and results too. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** A schema of a library that follows standardschema.dev, such as zod, arktype or valibot. */
export type StandardSchema<Input = unknown, Output = unknown> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Present if the library can write the schema as JSON Schema, as zod 4 and arktype do. */
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

/** The advertisement of an action, and its local checks. */
export type ActionSpec<S extends ActionSchema = ActionSchema, R extends ActionSchema = ActionSchema> = {
  /** One line for people and agents who choose an action. */
  readonly summary?: string;
  /** What the summary leaves out. */
  readonly description?: string;
  /** A version of your own. The relay compares nothing. */
  readonly version?: string;
  /**
   * The schema of the params: a JSON Schema 2020-12, or a schema of a library such as zod. Params that do not match are
   * refused with `arguments_invalid`, before `authorize` and `approve` are called. The handler receives what the
   * library's schema makes of them.
   */
  readonly schema?: S;
  /** The JSON Schema to advertise, for a library's schema that cannot be written as one. */
  readonly jsonSchema?: JsonSchema;
  /**
   * The schema of the result, which is not advertised. A result that does not match it is not sent: the command fails
   * with `result_unavailable`, since it ran.
   */
  readonly result?: R;
  /** Further facts about the action, as any JSON value. The whole advertisement has at most 64 KiB. */
  readonly metadata?: unknown;
  /**
   * Whether only one command of the action may run at a time. While it runs, others are refused (`lease_busy`). Default
   * false.
   */
  readonly lease?: boolean;
  /**
   * The longest time that the handler may run, in milliseconds: 1 to 2147483647. After it, the handler's signal is
   * aborted. If the handler then stops, the command fails with `client_timeout`. The command's own deadline applies
   * too. Absent: only the deadline applies.
   */
  readonly timeoutMs?: number;
  /**
   * Whether each command requires `approve`. Without an `approve` callback, each command is refused
   * (`approval_denied`). Default false.
   */
  readonly approval?: boolean;
  /**
   * What the action does, for people and tools; it changes nothing about how the action runs. An absent member says
   * nothing. `idempotent`: running the action again with the same params changes nothing more. `openWorld`: it acts on
   * something outside the client.
   */
  readonly effects?: {
    readonly readOnly?: boolean;
    readonly destructive?: boolean;
    readonly idempotent?: boolean;
    readonly openWorld?: boolean;
  };
};

/** The contract of some actions, by their names. */
export type ActionSpecs = Readonly<Record<string, ActionSpec>>;

/**
 * Returns the contract that it is given, with the types of its schemas. A client passes each of its actions to
 * `handle`; a caller passes the type: `createHttpCaller<typeof actions>(options)`.
 */
export function defineActions<const A extends ActionSpecs>(actions: A): A {
  return actions;
}

// The types that follow from schemas. A schema that is not known when the program is compiled gives no type.

/** The params of a command, if nothing more is known about them. */
export type Params = Readonly<Record<string, unknown>>;

/** What a value is before a library's schema has read it: params as a caller sends them, a result as it is returned. */
export type InputOf<S> = TypesOf<S>['input'];
/** What a value is after a library's schema has read it: params as a handler receives them, a result as it arrives. */
export type OutputOf<S> = TypesOf<S>['output'];

type TypesOf<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer I; readonly output: infer O }
    ? { readonly input: I; readonly output: O }
    : { readonly input: unknown; readonly output: unknown }
  : { readonly input: FromJsonSchema<S>; readonly output: FromJsonSchema<S> };

/** `T`, or `Params` if it is unknown. */
export type ParamsOr<T> = unknown extends T ? Params : T;

/** The params with which a caller invokes the action of this contract. */
export type ParamsIn<A> = A extends { readonly schema: infer S } ? ParamsOr<InputOf<S>> : Params;
/** The result that a caller receives from the action of this contract. */
export type ResultOf<A> = A extends { readonly result: infer R } ? OutputOf<R> : unknown;

/**
 * The type of the values that match a JSON Schema: the intersection of what its keywords say. Unknown for what types
 * cannot say, such as `$ref`, `not` and `if`.
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
