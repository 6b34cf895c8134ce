/** Tests that descriptions in the schema state what a row does not prove, and claim no more than it does prove. */
import { getNamedType, isObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { readOperations } from '../../src/rest/compile.ts';

const typeOf = (name: string) => {
  const type = schema.getType(name);
  if (!isObjectType(type)) throw new Error(`no type ${name}`);
  return type;
};
const saidOf = (type: string, field: string): string => typeOf(type).getFields()[field]?.description ?? '';

/** The names that suggest more than is proven, each with what its description must say. */
const UNPROVEN: readonly (readonly [what: string, type: string, fields: readonly string[], says: RegExp])[] = [
  [
    'a worker’s task_id',
    'ExecutionContext',
    ['taskId'],
    /not proof that a durable job system owns the task, nor that its external effect is complete/,
  ],
  [
    'a delivery status',
    'DeliveryRecord',
    ['stage', 'outcome'],
    /[nN]ot proof that an effect outside the client is complete/,
  ],
  ['a dedup counter', 'DedupStats', ['seen', 'unique', 'duplicates'], /not (proof that|how often) .*executed/],
];

describe("the schema's statements about what is not proven", () => {
  it.each(UNPROVEN)('%s: in %s', (_, type, fields, says) => {
    for (const field of fields) expect([field, saidOf(type, field)]).toEqual([field, expect.stringMatching(says)]);
  });

  it('a pending RPC does not prove that nothing was written, that the client did not run, or that no result was late', () => {
    const description = typeOf('PendingRpc').description ?? '';
    expect(description).toMatch(/Nothing more is shown/);
    expect(description).toMatch(/may have been written to the socket/);
    expect(description).toMatch(/the client may have run it/);
    expect(description).toMatch(/a result may have come after the caller stopped waiting/);
  });

  it('an assignment is stated wherever workers are listed, and a reservation of capacity too', () => {
    expect(typeOf('Workers').description).toMatch(/shows neither that a durable job system owns the task nor/);
    expect(saidOf('Workers', 'available')).toMatch(/Listing a worker does not reserve it/);
    expect(typeOf('CapacityScope').description).toMatch(/never that anything runs/);
  });

  it('hold for the whole record: no field of delivery claims completion outside', () => {
    const fields = Object.values(typeOf('DeliveryRecord').getFields());
    const claims = fields.filter(({ description }) => /complete|done|finished/i.test(description ?? ''));
    for (const { name, description } of claims)
      expect([name, description]).toEqual([name, expect.stringMatching(/not /i)]);
    expect(fields.filter(({ type }) => getNamedType(type).name === 'JSON')).toEqual([]);
  });

  it('are made by the routes that show these as well', () => {
    const text = readOperations()
      .map((one) => one.text)
      .join('\n')
      .replaceAll(/\s+/g, ' ');
    for (const description of [
      'No field of it means external completion',
      'a current assignment, and nothing more',
      'They describe ingestion by the server, not execution by clients',
      'A wait shows that its correlator has not resolved it, and nothing more',
      'A reservation is of admission, not of execution',
      'evidence of capability, not authorization',
    ])
      expect(text).toContain(description);
  });
});
