/**
 * Prepares the JSON Schema of an action for the forms library. Any client can advertise a schema, and the library
 * expands references, merges alternatives and fills lists on the page's main thread without a limit. So the library
 * gets a copy without references and regular expressions, and with at most FORM_PARTS parts. Parts that a form cannot
 * show become fields of JSON text.
 */
import type { RJSFSchema, UiSchema } from '@rjsf/utils';
import { fits, LIKE, isRecord, choicesIn } from './fit.ts';

/** The maximum number of parts of a form. A part counts each time a reference uses it. */
export const FORM_PARTS = 200;
/**
 * The maximum number of fields that a form shows, including those in the entries of its lists. Ten choices count as one
 * field.
 */
export const FORM_FIELDS = 400;
/** The maximum number of names, references and choices of one schema that are read. */
const FORM_STEPS = 5_000;
/**
 * The maximum number of characters of all choices, constants and defaults of a schema, each of which counts as at least
 * eight.
 */
const FORM_VALUE_CHARS = 16_000;
/** The maximum depth of a form. Deeper parts are JSON text, which bounds recursive schemas. */
const FORM_DEPTH = 8;
const TITLE_CHARS = 120;
const DESCRIPTION_CHARS = 1_000;
/** The maximum number of names in a reference such as `#/$defs/line`. */
const POINTER_STEPS = 16;
/** The maximum number of references that are followed one after the other to find a part. */
const HOPS = 8;

export type FormSchema = { readonly schema: RJSFSchema; readonly uiSchema: UiSchema };
/** How the console shows the arguments: with a form, or as JSON text, for the reason `why`. */
type FormOrReason = (FormSchema & { readonly why: null }) | { readonly why: string };

/**
 * Returns the copy for the forms library, or the reason why there is no form. Reads at most a limited part of the
 * schema.
 */
export function formSchemaOf(schema: unknown): FormOrReason {
  const left: Budget = { parts: FORM_PARTS, steps: FORM_STEPS, chars: FORM_VALUE_CHARS };
  try {
    const form = copyPart(schema, { root: schema, depth: 0, left, isSent: true });
    return fieldsOf(form.schema, {}) > FORM_FIELDS ? { why: TOO_MANY_FIELDS } : { ...form, why: null };
  } catch (error) {
    if (error instanceof TooLarge) return { why: error.message };
    throw error;
  }
}

const TOO_MANY_FIELDS = `the form would have more than ${FORM_FIELDS} fields`;

/** Returns the reason why the form cannot show a value, which is that it has too many entries; null if it can. */
export const valueFault = ({ schema }: FormSchema, value: unknown): string | null =>
  fieldsOf(schema, value) > FORM_FIELDS ? TOO_MANY_FIELDS : null;

/** Thrown if a schema has no form or exceeds a limit. The message completes “The arguments are written as JSON: …”. */
class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

type Budget = { parts: number; steps: number; chars: number };
type Place = {
  readonly root: unknown;
  readonly depth: number;
  readonly left: Budget;
  /**
   * Whether a constant of this part becomes the part's default. This is so if the part and all parts around it are
   * required, up to the whole arguments, an alternative, or an entry of a list.
   */
  readonly isSent: boolean;
  /** Whether the part is an alternative. The constants of an alternative identify it, so they are sent with it. */
  readonly isOption?: boolean;
};
export type Schema = Readonly<Record<string, unknown>>;

function spend({ left }: Place, steps: number): void {
  left.steps -= steps;
  if (left.steps < 0) throw new TooLarge(`the schema has more than ${FORM_STEPS} names and references`);
}

const NOT_FORMABLE = [
  ...['prefixItems', 'patternProperties', 'if', 'not', 'dependentSchemas', 'dependencies', 'unevaluatedProperties'],
  ...['contains', '$dynamicRef', '$recursiveRef'],
];
const NUMBERS = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems'],
] as const;
const FLAGS = ['readOnly', 'uniqueItems'] as const;
const TEXTS = { title: TITLE_CHARS, description: DESCRIPTION_CHARS, format: 40, pattern: 80 } as const;
/**
 * The name of the keyword that has the value of `format` in a copy, for the hint beside the field. The forms library
 * must not see `format`, because its widgets for formats convert typed text into dates, times and files.
 */
export const FORMAT_NAME = 'formatName';
const VALUES = ['const', 'default'] as const;
const OPTIONS = ['oneOf', 'anyOf'] as const;
/** The keywords that are read from a schema. No other keyword reaches the forms library. */
const COPIED = [
  ...['type', 'enum', 'properties', 'required', 'items', 'additionalProperties', 'allOf'],
  ...[...NUMBERS, ...FLAGS, ...Object.keys(TEXTS), ...VALUES, ...OPTIONS, ...NOT_FORMABLE],
];

function copyPart(given: unknown, place: Place): FormSchema {
  const { left, depth } = place;
  if (--left.parts < 0) throw new TooLarge(`the schema has more than ${FORM_PARTS} parts`);
  const schema = resolve(given, place);
  const copy: RJSFSchema = {};
  for (const name of ['title', 'description'] as const) {
    const text = schema?.[name];
    if (typeof text === 'string') copy[name] = cut(text, TEXTS[name]);
  }
  if (schema === null || depth > FORM_DEPTH || !isFormable(schema, place)) {
    if (depth === 0) throw new TooLarge('the schema says more than a form can show');
    if (schema?.['default'] !== undefined) copy.default = copyValue(schema['default'], place);
    // A keyword is needed, because the forms library shows nothing for a schema without any.
    copy.$comment = 'shown as JSON';
    return { schema: copy, uiSchema: { 'ui:field': 'JsonField' } };
  }
  copyPlain(schema, copy, place);
  const uiSchema = copyParts(schema, copy, { ...place, depth: depth + 1 });
  if (copy.const !== undefined) return { schema: copy, uiSchema: { ...uiSchema, 'ui:field': 'ConstField' } };
  const options = OPTIONS.map((keyword) => schema[keyword]).find((list) => Array.isArray(list));
  return options ? choiceOf({ schema: copy, uiSchema }, options, place) : { schema: copy, uiSchema };
}

/** Copies those keywords that contain no schemas. */
function copyPlain(schema: Schema, copy: RJSFSchema, place: Place): void {
  const { type, enum: choices, required } = schema;
  if (isTypeName(type)) copy.type = type;
  else if (Array.isArray(type)) copy.type = type.filter(isTypeName);
  for (const name of NUMBERS) if (typeof schema[name] === 'number') copy[name] = schema[name];
  for (const name of FLAGS) if (typeof schema[name] === 'boolean') copy[name] = schema[name];
  for (const name of ['format', 'pattern'] as const) {
    const text = schema[name];
    if (typeof text === 'string') copy[name === 'format' ? FORMAT_NAME : name] = cut(text, TEXTS[name]);
  }
  for (const name of VALUES) if (schema[name] !== undefined) copy[name] = copyValue(schema[name], place);
  if (copy.const !== undefined && copy.default === undefined && place.isSent) copy.default = copy.const;
  if (Array.isArray(choices)) {
    spend(place, choices.length);
    copy.enum = choices.map((choice) => copyValue(choice, place));
  }
  if (Array.isArray(required)) {
    spend(place, required.length);
    copy.required = required.filter((name) => typeof name === 'string');
  }
}

/** Copies the schemas inside a schema into its copy, and returns how the form shows them. */
function copyParts(schema: Schema, copy: RJSFSchema, below: Place): UiSchema {
  const uiSchema: UiSchema = {};
  const { properties, items, additionalProperties } = schema;
  if (isRecord(properties)) {
    const { isOption = false, ...others } = below;
    const parts = namesOf(properties, below).map((name) => {
      const isSent = below.isSent && (isOption || copy.required?.includes(name) === true);
      return [name, copyPart(properties[name], { ...others, isSent })] as const;
    });
    copy.properties = Object.fromEntries(parts.map(([name, part]) => [name, part.schema]));
    for (const [name, part] of parts) uiSchema[name] = part.uiSchema;
  }
  if (items !== undefined) {
    const part = copyPart(items, { ...below, isSent: true, isOption: false });
    // A new entry of type text begins empty. Without this default it would be null.
    if (part.schema.type === 'string') part.schema.default ??= part.schema.enum ? undefined : '';
    copy.items = part.schema;
    uiSchema['items'] = part.uiSchema;
  }
  if (typeof additionalProperties === 'boolean') copy.additionalProperties = additionalProperties;
  else if (additionalProperties !== undefined) {
    const part = copyPart(additionalProperties, { ...below, isOption: false });
    copy.additionalProperties = part.schema;
    uiSchema['additionalProperties'] = part.uiSchema;
  }
  return uiSchema;
}

/**
 * Converts a schema with alternatives into the field of a choice. The alternatives are hidden from the forms library,
 * because it would choose the first one and send its defaults although nobody chose it. Each alternative gets a copy of
 * the keywords that stand beside the alternatives.
 */
function choiceOf(own: FormSchema, options: readonly unknown[], place: Place): FormSchema {
  const { title, description, default: preset, ...base } = own.schema;
  const parts = options.map((option) => {
    const part = copyPart(option, { ...place, depth: place.depth + 1, isSent: true, isOption: true });
    if (part.uiSchema['ui:field'] === 'JsonField') return part;
    const properties = { ...base.properties, ...part.schema.properties };
    // These constants are not shown as fields, because the choice itself shows them.
    const said = Object.entries(part.uiSchema).map(([name, of]: [string, UiSchema]) =>
      of['ui:field'] === 'ConstField' ? [name, { ...of, 'ui:options': { isSaid: true } }] : [name, of],
    );
    const merged: RJSFSchema = { ...base, ...part.schema };
    if (Object.keys(properties).length > 0) merged.properties = properties;
    if (base.required && part.schema.required) merged.required = [...base.required, ...part.schema.required];
    return { schema: merged, uiSchema: { ...own.uiSchema, ...Object.fromEntries(said) } };
  });
  const schema: RJSFSchema = { $comment: 'a choice', choices: parts.map((part) => part.schema) };
  if (title !== undefined) schema.title = title;
  if (description !== undefined) schema.description = description;
  if (preset !== undefined) schema.default = preset;
  const uiSchema = { 'ui:field': 'ChoiceField', 'ui:choices': parts.map((part) => part.uiSchema) };
  return { schema, uiSchema };
}

/** Returns the index of the alternative that resembles a value most; -1 if none does. */
export function choiceIn(schema: RJSFSchema, value: unknown): number {
  const choices = choicesIn(schema);
  const exact = choices.findIndex((choice) => fits(choice, value));
  return exact >= 0 ? exact : choices.findIndex((choice) => fits(choice, value, LIKE));
}

/** Whether a value may be an unfinished value for a schema, because its types and constants fit. */
export const isLike = (schema: RJSFSchema, value: unknown): boolean => fits(schema, value, LIKE);

/** Whether the form has a control for values of this schema. */
function isFormable(schema: Schema, place: Place): boolean {
  if (NOT_FORMABLE.some((keyword) => schema[keyword] !== undefined)) return false;
  const { type, properties } = schema;
  if (isRecord(properties) && namesOf(properties, place).some(isReserved)) return false;
  if (OPTIONS.every((keyword) => schema[keyword] !== undefined)) return false;
  if (schema['enum'] !== undefined || schema['const'] !== undefined) return true;
  if (schema['oneOf'] !== undefined || schema['anyOf'] !== undefined) return true;
  if (Array.isArray(type)) return type.length < 8 && type.filter((name) => name !== 'null').length === 1;
  if (type === 'array') return schema['items'] !== undefined && typeof schema['items'] !== 'boolean';
  return isTypeName(type) || (type === undefined && isRecord(properties));
}

/**
 * Combines the keywords of a schema, of the schema that its `$ref` names, and of all schemas in its `allOf` into one
 * schema. Null if a reference does not name a part of the document or leads through too many others, and if keywords
 * cannot be combined.
 */
function resolve(given: unknown, place: Place, hops = 0): Schema | null {
  spend(place, 1);
  if (!isRecord(given) || hops > HOPS) return null;
  const found: Record<string, unknown> = {};
  for (const keyword of COPIED) if (Object.hasOwn(given, keyword)) found[keyword] = given[keyword];
  const { $ref } = given;
  const { allOf, ...own } = found;
  const others = [
    ...($ref === undefined ? [] : [resolve(targetOf($ref, place), place, hops + 1)]),
    ...(Array.isArray(allOf) ? allOf.map((member) => resolve(member, place, hops + 1)) : []),
  ];
  return others.reduce<Schema | null>((merged, other) => merged && other && mergeTwo(merged, other, place), own);
}

/** Returns the part of the root schema that a reference names; undefined if it names none. */
function targetOf(reference: unknown, { root }: Place): unknown {
  if (reference === '#') return root;
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return undefined;
  const steps = reference.slice(2).split('/', POINTER_STEPS + 1);
  if (steps.length > POINTER_STEPS) return undefined;
  let found = root;
  for (const step of steps) {
    const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    found = (isRecord(found) || Array.isArray(found)) && Object.hasOwn(found, name) ? Reflect.get(found, name) : null;
  }
  return found;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** Combines the keywords of two schemas that a value must both satisfy. Null if they cannot simply be combined. */
function mergeTwo(first: Schema, second: Schema, place: Place): Schema | null {
  const merged: Record<string, unknown> = { ...first };
  for (const [keyword, value] of Object.entries(second)) {
    const was = first[keyword];
    if (was === undefined) merged[keyword] = value;
    else if (keyword === 'properties' && isRecord(was) && isRecord(value)) {
      const [known, added] = [namesOf(was, place), namesOf(value, place)];
      if (added.some((name) => Object.hasOwn(was, name))) return null;
      merged[keyword] = Object.fromEntries([
        ...known.map((name) => [name, was[name]] as const),
        ...added.map((name) => [name, value[name]] as const),
      ]);
    } else if (keyword === 'required' && Array.isArray(was) && Array.isArray(value)) {
      spend(place, was.length + value.length);
      merged[keyword] = [...was, ...value];
    } else if (was !== value && !['title', 'description', 'default'].includes(keyword)) return null;
  }
  return merged;
}

function namesOf(record: Schema, place: Place): readonly string[] {
  const names = Object.keys(record);
  spend(place, names.length);
  return names;
}

type Json = Exclude<RJSFSchema['default'], undefined>;

/**
 * Copies a value of a schema for the form. Throws TooLarge for a long value, and for a name that all objects inherit.
 */
function copyValue(value: unknown, place: Place, depth = 0): Json {
  const { left } = place;
  left.chars -= typeof value === 'string' ? value.length + 8 : 8;
  if (left.chars < 0 || depth > FORM_DEPTH)
    throw new TooLarge(
      `the choices, constants and defaults of the schema are longer than ${FORM_VALUE_CHARS} characters`,
    );
  if (Array.isArray(value)) return value.map((item) => copyValue(item, place, depth + 1));
  if (isRecord(value)) {
    const entries = Object.entries(value).map(([name, member]) => {
      if (isReserved(name)) throw new TooLarge(`a form cannot hold the name ${name}`);
      left.chars -= name.length;
      return [name, copyValue(member, place, depth + 1)] as const;
    });
    return Object.fromEntries(entries);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

/**
 * Returns the number of fields that a form shows for a value, or any number above FORM_FIELDS. `filled`: the value that
 * the defaults of the parts around this one give it.
 */
function fieldsOf(schema: RJSFSchema, value: unknown, filled?: unknown): number {
  const preset: unknown = filled ?? schema.default;
  const shown = value ?? preset;
  let fields = 1 + (schema.enum?.length ?? 0) / 10;
  const add = (part: RJSFSchema | boolean | undefined, at: unknown, otherwise?: unknown): void => {
    if (fields <= FORM_FIELDS && typeof part === 'object') fields += fieldsOf(part, at, otherwise);
  };
  const { properties = {}, items, additionalProperties, minItems = 0 } = schema;
  for (const [name, part] of Object.entries(properties)) add(part, memberOf(shown, name), memberOf(preset, name));
  if (isRecord(shown) && additionalProperties !== false) {
    const others = Object.keys(shown).filter((name) => !Object.hasOwn(properties, name));
    fields += others.length;
    for (const name of others) add(additionalProperties, shown[name]);
  }
  if (typeof items === 'object' && !Array.isArray(items)) {
    const entries = Array.isArray(shown) ? shown : [];
    for (const entry of entries.slice(0, FORM_FIELDS + 1)) add(items, entry);
    const missing = Math.max(0, minItems - entries.length);
    if (missing > 0) fields += missing * fieldsOf(items, undefined);
  }
  for (const option of choicesIn(schema)) add(option, value, filled);
  return fields;
}

const memberOf = (value: unknown, name: string): unknown =>
  isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** Cuts a long text, but never between the two halves of a character. */
const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most).replace(/[\ud800-\udbff]$/, '')}…`;

type TypeName = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null';
const TYPE_NAMES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

const isTypeName = (name: unknown): name is TypeName => TYPE_NAMES.includes(name);

/**
 * Whether the forms library cannot represent a member of this name, because all objects inherit the name or because the
 * library uses it for itself.
 */
export const isReserved = (name: string): boolean => name in {} || name === '__errors' || name.startsWith('ui:');
