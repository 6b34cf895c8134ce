/** Reads the variables of an operation from the path, query and body of a request. */
import type { JsonText } from '../core/json.ts';
import { readShaped, type Shape } from '../core/json-shape.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import { decode, queryPairs } from './coerce.ts';
import { collectFaults, type Faults } from './faults.ts';
import { isRecord } from '../core/json.ts';
import type { Input } from './inputs.ts';
import type { InputError } from '../core/errors.ts';

/** What a route needs to read a request. */
export type Reading = {
  readonly inputs: ReadonlyMap<string, Input>;
  readonly bodyAs: string | null;
  readonly bodyShape: Shape;
};

/**
 * The parts of a request that hold its input. `path` values are still percent-encoded; `body` is JSON text, undefined
 * when the request had none.
 */
export type RequestParts = {
  readonly path: Readonly<Record<string, string | undefined>>;
  readonly query: string;
  readonly body: JsonText | undefined;
};

type Variables = Record<string, unknown>;

/**
 * Reads the variables of a document from a request, and collects every fault of the request. `defaulted` names the
 * variables that the request left to their defaults.
 */
export function readVariables(
  reading: Reading,
  parts: RequestParts,
): {
  readonly variables: Readonly<Variables>;
  readonly faults: readonly InputError[];
  readonly defaulted: readonly string[];
} {
  const faults = collectFaults();
  // Every variable that was sent, valid or not, so that an invalid one is neither reported as missing nor replaced by
  // its default.
  const variables: Variables = {};
  const defaulted: string[] = [];
  readPath(reading, parts.path, { variables, faults });
  readQuery(reading, parts.query, { variables, faults });
  readBody(reading, parts.body, { variables, faults });
  for (const { name, required, defaultValue } of reading.inputs.values()) {
    if (Object.hasOwn(variables, name)) continue;
    if (defaultValue !== undefined) {
      variables[name] = defaultValue;
      defaulted.push(name);
    } else if (required) faults.add(name, 'required');
  }
  return { variables, faults: faults.list, defaulted };
}

type Target = { readonly variables: Variables; readonly faults: Faults };

function readPath({ inputs }: Reading, path: RequestParts['path'], { variables, faults }: Target): void {
  for (const [name, raw] of Object.entries(path)) {
    const input = inputs.get(name);
    if (input?.place !== 'path' || raw === undefined) continue;
    const text = decode(raw);
    if (text === null) faults.add(name, 'not valid percent-encoding');
    variables[name] = text === null ? undefined : input.read(text, name, faults);
  }
}

function readQuery({ inputs }: Reading, query: string, { variables, faults }: Target): void {
  if (query === '') return;
  for (const [name, raw] of queryPairs(query, faults)) {
    const input = inputs.get(name);
    if (input?.place !== 'query') faults.add(name, 'unknown parameter');
    else if (Object.hasOwn(variables, name)) faults.add(name, 'given twice');
    else variables[name] = input.read(raw, name, faults);
  }
}

function readBody({ inputs, bodyAs, bodyShape }: Reading, json: RequestParts['body'], target: Target): void {
  if (json === undefined) return;
  const { variables, faults } = target;
  const built = readShaped(json, bodyShape, ENVELOPE_PARTS);
  if (built === null) return faults.add('body', `at most ${ENVELOPE_PARTS} members and items are read`);
  const body = built.value;
  if (bodyAs !== null) {
    const input = inputs.get(bodyAs);
    if (input?.place === 'body') variables[bodyAs] = input.read(body, '', faults);
    return;
  }
  if (!isRecord(body)) return faults.add('body', 'expected a JSON object');
  for (const name of Object.keys(body)) {
    const input = inputs.get(name);
    const value = body[name];
    if (input?.place !== 'body') faults.add(name, 'unknown member');
    // A null member counts as absent: its default applies.
    else if (value !== null) variables[name] = input.read(value, name, faults);
  }
}
