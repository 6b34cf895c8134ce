/**
 * Describes the faults of arguments in a few words for people. The library that checks arguments reports every violated
 * keyword of the schema, every keyword around it, and the keywords of all alternatives. From these errors, this file
 * selects what the user must change. Only the worker uses it.
 */
import type { OutputUnit } from '@cfworker/json-schema';
import type { ParamsFault } from './checker.ts';

/** The maximum number of faults that are shown. */
const FAULTS = 20;
/** The maximum length of a fault's text, in characters. The text may contain texts of the schema. */
export const FAULT_CHARS = 300;

/** Returns the faults as texts for people, without repetitions. `errors`: the errors of the library, in its order. */
export function faultsOf(errors: readonly OutputUnit[]): readonly ParamsFault[] {
  const faults = withoutUnknown(chosen(placed(errors))).flatMap((error) => {
    const text = textOf(error);
    return text === null ? [] : [{ at: placeOf(error), text: text.slice(0, FAULT_CHARS), syntax: false }];
  });
  return [...new Map(faults.map((fault) => [`${fault.at} ${fault.text}`, fault])).values()].slice(0, FAULTS);
}

/**
 * Sets the location in the schema of errors for the schema `false`. The library reports the location of the value
 * instead. Such an error follows the error of the keyword whose value is `false`.
 */
function placed(errors: readonly OutputUnit[]): readonly OutputUnit[] {
  return errors.map((error, at) => {
    const before = errors[at - 1];
    return error.keyword === 'false' && before
      ? { ...error, keywordLocation: `${before.keywordLocation}/false` }
      : error;
  });
}

const isBelow = (path: string, above: string): boolean => path.startsWith(`${above}/`);
const isAtOrBelow = (path: string, above: string): boolean => path === above || isBelow(path, above);

/**
 * For a choice of alternatives, keeps only the errors of the alternative that the value resembles most. If it resembles
 * none, keeps a single error.
 */
function chosen(errors: readonly OutputUnit[]): readonly OutputUnit[] {
  const at = errors.findIndex(({ keyword }) => keyword === 'oneOf' || keyword === 'anyOf');
  const choice = errors[at];
  if (!choice) return errors;
  const isPart = ({ instanceLocation, keywordLocation }: OutputUnit): boolean =>
    isBelow(keywordLocation, choice.keywordLocation) && isAtOrBelow(instanceLocation, choice.instanceLocation);
  const parts = new Map<string, OutputUnit[]>();
  for (const error of errors.filter(isPart)) {
    const index = error.keywordLocation.slice(choice.keywordLocation.length + 1).split('/', 1)[0] ?? '';
    parts.set(index, [...(parts.get(index) ?? []), error]);
  }
  const others = errors.filter((error, i) => i > at && !isPart(error));
  const said = closest([...parts.values()].map(chosen), choice);
  return [...errors.slice(0, at), ...said, ...chosen(others)];
}

/**
 * Returns the errors to show for a value that fits no alternative, or several. `parts`: the errors of each alternative
 * that the value does not fit.
 */
function closest(parts: readonly (readonly OutputUnit[])[], choice: OutputUnit): readonly OutputUnit[] {
  const { instanceLocation, error } = choice;
  if (/\([2-9]\d* matches\)|\(1\d+ matches\)/.test(error)) return [{ ...choice, error: 'SEVERAL' }];
  const here = (part: readonly OutputUnit[], keywords: readonly string[]): OutputUnit | undefined =>
    part.find((unit) => unit.instanceLocation === instanceLocation && keywords.includes(unit.keyword));
  const ofKind = parts.filter((part) => !here(part, ['type', 'const', 'enum']));
  if (ofKind.length === 0) {
    // The value has another type than all alternatives, so the allowed types or values are named.
    const kinds = parts.map((part) => here(part, ['const', 'enum']) ?? here(part, ['type']));
    const [first] = kinds;
    if (first && kinds.every((kind) => kind?.keyword === 'type')) return [joined(first, typesIn(kinds))];
    const values = kinds.flatMap((kind) => (kind ? valuesIn(kind) : []));
    return values.length > 0 && kinds.every((kind) => kind?.keyword !== 'type')
      ? [{ ...choice, keyword: 'enum', error: `any of ${JSON.stringify(values)}.` }]
      : [
          joined(
            { ...choice, keyword: 'type' },
            typesIn(kinds.map((kind, i) => here(parts[i] ?? [], ['type']) ?? kind)),
          ),
        ];
  }
  // An alternative was not meant if the value has a member that the alternative's constant or choice for it excludes.
  const isMeant = (part: readonly OutputUnit[]): boolean =>
    !part.some(
      ({ keyword, instanceLocation: at }) => ['const', 'enum'].includes(keyword) && isMember(at, instanceLocation),
    );
  const meant = ofKind.filter(isMeant);
  if (meant.length > 0) return [...meant].sort((one, other) => one.length - other.length)[0] ?? [];
  const named = ofKind.flatMap((part) => part.filter((unit) => unit.keyword === 'const'));
  const [one] = named;
  if (one && named.every((unit) => unit.instanceLocation === one.instanceLocation))
    return [{ ...one, keyword: 'enum', error: `any of ${JSON.stringify(named.flatMap(valuesIn))}.` }];
  return [choice];
}

const isMember = (path: string, above: string): boolean =>
  isBelow(path, above) && !path.slice(above.length + 1).includes('/');

function joined(unit: OutputUnit, types: readonly string[]): OutputUnit {
  return { ...unit, error: `Expected "${[...new Set(types)].join('", "')}".` };
}

function typesIn(units: readonly (OutputUnit | undefined)[]): readonly string[] {
  return units.flatMap((unit) => {
    if (unit?.keyword === 'type') return listed(unit.error);
    return unit ? valuesIn(unit).map(typeNameOf) : [];
  });
}

function typeNameOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

const listed = (error: string): readonly string[] => (/Expected "(.*)"\.$/s.exec(error)?.[1] ?? '').split('", "');

/** Returns the values that the schema allows, from the error of a `const` or `enum`. */
function valuesIn({ keyword, error }: OutputUnit): readonly unknown[] {
  const text = /(?:match any of|any of|match) (.*)\.$/s.exec(error)?.[1] ?? '';
  try {
    const value: unknown = JSON.parse(text);
    return keyword === 'enum' && Array.isArray(value) ? value : [value];
  } catch {
    return [];
  }
}

/**
 * Removes errors for the schema `false` of members that have other faults. If a schema forbids further members, the
 * library reports each faulty member as a further one too.
 */
function withoutUnknown(errors: readonly OutputUnit[]): readonly OutputUnit[] {
  const others = errors.filter(({ keyword }) => keyword !== 'false' && !AROUND.has(keyword));
  return errors.filter(
    ({ keyword, instanceLocation }) =>
      keyword !== 'false' || !others.some((other) => isAtOrBelow(placeIn(other), instanceLocation)),
  );
}

/** Keywords whose errors only state that a part of the value has errors. */
const AROUND = new Set([
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'propertyNames', 'items'],
  ...['additionalItems', 'unevaluatedItems', 'prefixItems', 'allOf', 'if', 'dependentSchemas', '$ref', '$recursiveRef'],
]);

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
};

const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
const counted = (count: string, one: string): string => `${count} ${one}${count === '1' ? '' : 's'}`;

/** The text for a fault, by keyword. `number`: the last number in the library's message, which is the bound. */
const WORDS: Readonly<Record<string, (error: string, number: string) => string>> = {
  type: (error) => `Must be ${orList(listed(error).map((name) => TYPES[name] ?? name))}.`,
  required: () => 'Required.',
  minimum: (_, number) => `At least ${number}.`,
  maximum: (_, number) => `At most ${number}.`,
  exclusiveMinimum: (_, number) => `More than ${number}.`,
  exclusiveMaximum: (_, number) => `Less than ${number}.`,
  multipleOf: (_, number) => `A multiple of ${number}.`,
  minLength: (_, number) => `At least ${counted(number, 'character')}.`,
  maxLength: (_, number) => `At most ${counted(number, 'character')}.`,
  minItems: (_, number) => `At least ${number === '1' ? '1 entry' : `${number} entries`}.`,
  maxItems: (_, number) => `At most ${number === '1' ? '1 entry' : `${number} entries`}.`,
  minProperties: (_, number) => `At least ${counted(number, 'member')}.`,
  maxProperties: (_, number) => `At most ${counted(number, 'member')}.`,
  uniqueItems: (error) => {
    const [, one, other] = /indexes (\d+) and (\d+)/.exec(error) ?? [];
    return `Entries ${Number(one) + 1} and ${Number(other) + 1} are equal.`;
  },
  pattern: () => 'Does not fit the pattern of the schema.',
  format: (error) => `Not of the format ${/"(.*)"/.exec(error)?.[1] ?? 'of the schema'}.`,
  not: () => 'The schema excludes this value.',
  contains: () => 'No entry is of the kind that the schema asks for.',
  false: () => 'The schema has no such name.',
  oneOf: (error) =>
    error === 'SEVERAL' ? 'Fits several alternatives, and must fit one.' : 'Fits none of the alternatives.',
  anyOf: () => 'Fits none of the alternatives.',
};

/** Returns the text for an error; null if the error only states that a part of the value has errors. */
function textOf(unit: OutputUnit): string | null {
  const { keyword, error, keywordLocation } = unit;
  // Errors below `contains` and `not` only explain why a part does not match, which is no fault of that part.
  if (AROUND.has(keyword) || /\/(contains|not)\//.test(keywordLocation)) return null;
  if (keyword === 'const') return `Must be ${/match (.*)\.$/s.exec(error)?.[1] ?? 'another value'}.`;
  if (keyword === 'enum')
    return `One of ${valuesIn(unit)
      .map((value) => JSON.stringify(value))
      .join(', ')}.`;
  if (/^depend/.test(keyword)) return `Needs “${/"([^"]*)"\.$/.exec(error)?.[1] ?? 'another member'}” as well.`;
  const number = error.match(/-?\d[\d.e+-]*(?=\D*$)/i)?.[0].replace(/\.$/, '') ?? '';
  return WORDS[keyword]?.(error, number) ?? `Does not fit the schema (${keyword}).`;
}

/** Returns the location of a fault in the value. The fault of a missing member has the location of that member. */
function placeIn({ keyword, error, instanceLocation }: OutputUnit): string {
  const missing = keyword === 'required' ? /property "(.*)"\.$/s.exec(error)?.[1] : undefined;
  return missing === undefined
    ? instanceLocation
    : `${instanceLocation}/${missing.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Returns a location such as `#/lines/0/text` with dots, as `lines.0.text`. */
function placeOf(unit: OutputUnit): string {
  return placeIn(unit)
    .replace(/^#\/?/, '')
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}
