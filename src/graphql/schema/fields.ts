/**
 * Declares the fields of a GraphQL type as a table. Each field shows a member of the type's row or has its own
 * resolver.
 */
import type { FieldRef, OutputType, TypeParam } from '@pothos/core';
import type { JsonText } from '../../core/json.ts';
import type { Types } from './builder.ts';

type FieldBuilder<Row> = PothosSchemaTypes.ObjectFieldBuilder<Types, Row>;
type Ref = FieldRef<Types>;

/** What a field may declare besides its type and description: its cost, and hints for the plan. */
type More = { readonly complexity?: unknown; readonly extensions?: object };

/** A field that shows a member of its row unchanged. `Value`: the type of that member. */
class Shown<Value> {
  readonly options: object;
  declare readonly holds?: (value: Value) => void;

  constructor(type: TypeParam<Types>, nullable: boolean, described: More & { readonly description: string }) {
    this.options = { type, nullable, ...described };
  }
}

function declare<Value>(type: TypeParam<Types>, nullable = false) {
  return (description: string, more?: More) => new Shown<Value>(type, nullable, { description, ...more });
}

export const id = declare<string>('ID');
export const text = declare<string>('String');
export const int = declare<number>('Int');
export const float = declare<number>('Float');
export const flag = declare<boolean>('Boolean');
/** A time in epoch milliseconds. */
export const time = declare<number>('DateTime');
export const json = declare<JsonText>('JSON');
export const texts = declare<readonly string[]>(['String']);

/** An enum or object type that records the type of the values that its fields return. */
type Typed<Value> = OutputType<Types> & { readonly $inferType: Value };

/** Declares a field of an enum or object type. */
export function typed<Value>(type: Typed<Value>, description: string, more?: More) {
  return declare<Value>(type)(description, more);
}

/** Declares a field whose value is a list of an enum or object type. */
export function list<Value>(type: Typed<Value>, description: string, more?: More) {
  return declare<readonly Value[]>([type])(description, more);
}

type Nullish = null | undefined;

/** Declares fields whose member may be null or absent. */
export const nullable = {
  id: declare<string | Nullish>('ID', true),
  text: declare<string | Nullish>('String', true),
  int: declare<number | Nullish>('Int', true),
  float: declare<number | Nullish>('Float', true),
  flag: declare<boolean | Nullish>('Boolean', true),
  time: declare<number | Nullish>('DateTime', true),
  json: declare<JsonText | Nullish>('JSON', true),
  texts: declare<readonly string[] | Nullish>(['String'], true),
  typed: <Value>(type: Typed<Value>, description: string, more?: More) =>
    declare<Value | Nullish>(type, true)(description, more),
};

/** A table of fields. A field that shows a member of the row must have the member's name. */
type Table<Row, Names> = {
  readonly [Name in keyof Names]: Ref | (Name extends keyof Row ? Shown<Row[Name]> : never);
};

type Fields = Readonly<Record<string, Ref>>;

/** The methods of Pothos that create a field. `Table` has already checked that the options fit the row. */
type Makes<Row> = {
  expose(name: string, options: object): Ref;
  field(options: object & { readonly resolve: (row: Row) => unknown }): Ref;
};

/** Creates the fields of a type from their table. */
export function fieldsOf<Row, Names extends object>(table: (t: FieldBuilder<Row>) => Names & Table<Row, Names>) {
  return (t: FieldBuilder<Row>): Fields => {
    const makes = t as unknown as Makes<Row>;
    return made(table(t), (name, options) => makes.expose(name, options));
  };
}

/** Creates fields that show members of a part of the row, for use in the table of the row's type. */
export function fieldsOfPart<Row, Part extends keyof Row, Names extends object>(
  t: FieldBuilder<Row>,
  part: Part,
  table: Names & Table<Row[Part], Names>,
): Fields {
  const makes = t as unknown as Makes<Row>;
  return made(table, (name, options) =>
    makes.field({ ...options, resolve: (row) => (row[part] as Record<string, unknown>)[name] }),
  );
}

function made(table: object, make: (name: string, options: object) => Ref): Fields {
  const fields = Object.entries(table as Record<string, Ref | Shown<never>>);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, field instanceof Shown ? make(name, field.options) : field]),
  );
}
