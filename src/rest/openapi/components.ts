/** Collects the schemas and parameters that an OpenAPI document names once and refers to. */
import { componentOf, type JsonSchema } from '../named.ts';

/** A description of a parameter, as OpenAPI has it. */
export type Parameter = JsonSchema & { readonly name: string; readonly in: string };

export type Components = {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /**
   * Returns the value with a `$ref` in place of each named schema, and adds those schemas to `schemas`. `owner` names
   * the part of the document that uses the value. If two schemas have the same name, the second is called
   * `<name>Of<owner>`.
   */
  resolve<T>(value: T, owner: string): T;
};

/** The suffix of the names of request bodies. */
export const BODY = 'Body';

export function createComponents(): Components {
  const schemas: Record<string, JsonSchema> = {};
  const add = (name: string, schema: JsonSchema, owner: string): string => {
    // A body is named for its operation, but several operations may take the same body.
    const twin =
      name.endsWith(BODY) && Object.keys(schemas).find((one) => one.endsWith(BODY) && isSame(schemas[one], schema));
    if (twin) return twin;
    const candidates = [name, `${name}Of${owner}`];
    const free = candidates.find((one) => !schemas[one] || isSame(schemas[one], schema));
    if (free === undefined) throw new Error(`The component ${name} has three forms; the third is in ${owner}.`);
    schemas[free] = schema;
    return free;
  };
  const resolve = (value: unknown, owner: string): unknown => {
    if (Array.isArray(value)) return value.map((one: unknown) => resolve(one, owner));
    if (!isSchema(value)) return value;
    const rest = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolve(inner, owner)]));
    const component = componentOf(value);
    if (!component) return rest;
    const whole = resolve(component.schema, owner);
    return { $ref: `#/components/schemas/${add(component.name, isSchema(whole) ? whole : {}, owner)}`, ...rest };
  };
  // The type stays the same: only named schemas are replaced, and by schemas.
  return { schemas, resolve: <T>(value: T, owner: string) => resolve(value, owner) as T };
}

/** The parameters that several operations have, by component name. */
export type SharedParameters = {
  readonly parameters: Readonly<Record<string, Parameter>>;
  /** Returns a `$ref` for a shared parameter; any other parameter as it is. */
  refer(parameter: Parameter): JsonSchema;
};

/** A parameter, and the tag of an operation that has it. */
export type UsedParameter = { readonly parameter: Parameter; readonly tag: string };

/** Finds the parameters that occur more than once with the same description. */
export function shareParameters(all: readonly UsedParameter[]): SharedParameters {
  const groups = Map.groupBy(all, ({ parameter }) => JSON.stringify(parameter));
  const shared = [...groups].filter(([, uses]) => uses.length > 1).sort(([, a], [, b]) => b.length - a.length);
  const names = new Map<string, string>();
  const parameters: Record<string, Parameter> = {};
  for (const [key, [first]] of shared) {
    if (!first) continue;
    const name = freeName(first, parameters);
    names.set(key, name);
    parameters[name] = first.parameter;
  }
  return {
    parameters,
    refer(parameter) {
      const name = names.get(JSON.stringify(parameter));
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
    },
  };
}

/**
 * Returns a free name for a parameter: `ClientIdInPath` in a path, otherwise `ClientId`. If parameters of one name
 * differ, the rarer ones get the tag in their name: `ClientIdOfContexts`.
 */
function freeName({ parameter, tag }: UsedParameter, taken: Readonly<Record<string, unknown>>): string {
  const name = capitalized(parameter.name) + (parameter.in === 'path' ? 'InPath' : '');
  const candidates = [name, `${name}Of${capitalized(tag)}`];
  const free = candidates.find((one) => !(one in taken));
  if (free === undefined) throw new Error(`The parameter ${name} has several forms in ${tag}.`);
  return free;
}

function capitalized(name: string): string {
  const words = name.split(/[_-]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return words.join('');
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null;
}

function isSame(one: JsonSchema | undefined, other: JsonSchema): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
