/** Compiles input types into functions that coerce values, as `coerceInputValue` of graphql-js does. */
import {
  coerceInputLiteral,
  coerceInputValue,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
} from 'graphql';
import { isRecord } from '../core/json.ts';

/** Returns the value in the form that resolvers receive. Undefined: the given value does not fit the type. */
export type Coerce = (given: unknown) => unknown;

const coercers = new WeakMap<GraphQLInputType, Coerce>();

export function coercerOf(type: GraphQLInputType): Coerce {
  const known = coercers.get(type);
  if (known) return known;
  const made = createCoercer(type);
  coercers.set(type, made);
  return made;
}

function createCoercer(type: GraphQLInputType): Coerce {
  if (isNonNullType(type)) {
    const coerce = coercerOf(type.ofType);
    return (given) => (given === null || given === undefined ? undefined : coerce(given));
  }
  const coerce = presentCoercer(type);
  return (given) => (given === null || given === undefined ? null : coerce(given));
}

/** Creates the coercing function for values that are neither null nor undefined. */
function presentCoercer(type: GraphQLInputType): Coerce {
  if (isListType(type)) return listCoercer(coercerOf(type.ofType));
  if (isLeafType(type)) return leafCoercer(type);
  return isInputObjectType(type) && !type.isOneOf ? objectCoercer(type) : (given) => coerceInputValue(given, type);
}

function leafCoercer(type: GraphQLLeafType): Coerce {
  return (given) => {
    try {
      return type.coerceInputValue(given);
    } catch {
      return undefined;
    }
  };
}

function listCoercer(coerce: Coerce): Coerce {
  return (given) => {
    const made: unknown[] = [];
    for (const one of Array.isArray(given) ? given : [given]) {
      const fit = coerce(one);
      if (fit === undefined) return undefined;
      made.push(fit);
    }
    return made;
  };
}

function objectCoercer(type: GraphQLInputObjectType): Coerce {
  let compiled: ReturnType<typeof membersOf> | null = null;
  return (given) => {
    if (!isRecord(given)) return undefined;
    // Compiled when the first value arrives, because an input type may contain itself.
    compiled ??= membersOf(type);
    for (const name of Object.keys(given)) if (!compiled.has(name) && given[name] !== undefined) return undefined;
    const made: Record<string, unknown> = {};
    for (const [name, { coerce, required, preset }] of compiled) {
      const value = given[name];
      const fit = value === undefined ? preset : coerce(value);
      if (fit !== undefined) made[name] = fit;
      else if (value !== undefined || required) return undefined;
    }
    return made;
  };
}

function membersOf(type: GraphQLInputObjectType) {
  const fields = Object.values(type.getFields());
  return new Map(fields.map((field) => [field.name, { coerce: coercerOf(field.type), ...absenceOf(field) }]));
}

/**
 * Returns what applies if an argument or input field is not given. `preset`: its default; undefined: it has none.
 * `required`: it must be given.
 */
// oxlint-disable-next-line typescript/no-deprecated -- the builder of the schema gives default values in this form
export function absenceOf({ type, default: given, defaultValue }: GraphQLArgument | GraphQLInputField) {
  const literal = given?.literal;
  const value = literal ? coerceInputLiteral(literal, type) : given && coerceInputValue(given.value, type);
  const preset: unknown = given ? value : defaultValue;
  return { preset, required: isNonNullType(type) && preset === undefined };
}

/** Variables as a requester sends them. */
export type Variables = Readonly<Record<string, unknown>>;
/**
 * Values in the form that resolvers receive, by the name of their variable or argument. A name without a value is
 * absent.
 */
export type Values = Readonly<Record<string, unknown>>;
