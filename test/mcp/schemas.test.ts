/**
 * Tests which schemas tools list and how: what hosts refuse is never in a list, real schemas keep their properties,
 * and no text of a client is shown without its bound, its cleaning and its mark.
 */
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CONSOLE_ACTIONS, PHONE_ACTIONS, printerActions } from '../../demo/actions.ts';
import { isRecord, trustJson } from '../../src/core/json.ts';
import { AGENT_SCHEMA_CHARS } from '../../src/core/limits.ts';
import { SHARE_BOUNDS } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { judgeSchema } from '../../src/mcp/schemas.ts';
import { schemaFault } from '../../src/mcp/schema-check.ts';
import { ARGUMENT_SCHEMAS } from '../../src/mcp/tool-arguments.ts';
import type { Tool } from '../../src/mcp/tools.ts';
import { catalogOf, offer, toolsOf, type Offer } from './kit/catalogs.ts';
import { anySchema, MENDED, REFUSED } from './kit/hostile-schemas.ts';
import { refusedByHosts } from './kit/host-rules.ts';
import { REAL_TOOLS } from './kit/real-tools.ts';
import { unmarkedTexts } from './kit/texts.ts';

const OWN = Object.keys(ARGUMENT_SCHEMAS);

function offerOf(schema: unknown, name = 'page.act', clientId = 'page'): Offer {
  return offer(name, { schema: trustJson(JSON.stringify(schema)), summary: 'Acts' }, clientId);
}

function listed(schema: unknown): Tool {
  const [found] = toolsOf([offerOf(schema)]);
  if (!found) throw new Error('there is no tool');
  return found.tool;
}

/** The properties that a schema lists for the params of an action. */
function paramsOf({ inputSchema: { properties } }: Tool): Readonly<Record<string, unknown>> {
  const all = Object.entries(isRecord(properties) ? properties : {});
  return Object.fromEntries(all.filter(([name]) => !OWN.includes(name)));
}

/** Whether every host and every client of the SDK takes these tools. */
function refusals(tools: readonly Tool[]): readonly string[] {
  const parsed = ListToolsResultSchema.safeParse({ tools });
  return [...tools.flatMap(refusedByHosts), ...(parsed.success ? [] : [parsed.error.message])];
}

function withoutDialect({ $schema: _, ...schema }: Readonly<Record<string, unknown>>): object {
  return schema;
}

/** Schemas that the property below has drawn. The seed makes them the same ones each time. */
const GENERATED = fc.sample(anySchema, { numRuns: 200, seed: 7 });

describe('a schema that hosts would refuse', () => {
  it.each(REFUSED)('%j is listed as an open object: %s', (schema, why) => {
    const judged = judgeSchema(trustJson(JSON.stringify(schema)), 'page');
    expect(judged.why).toMatch(why);
    const tool = listed(schema);
    expect(Object.keys(tool.inputSchema)).toEqual(['type', 'properties']);
    expect(paramsOf(tool)).toEqual({});
    expect(refusals([tool])).toEqual([]);
  });

  it.each(MENDED)('%j is listed without what they refuse', (schema) => {
    expect(judgeSchema(trustJson(JSON.stringify(schema)), 'page').why).toBeNull();
    const tool = listed(schema);
    expect(refusals([tool])).toEqual([]);
    expect(unmarkedTexts(tool)).toEqual([]);
  });

  it('changes no tool of another client, and not the tool of the same action', () => {
    const neighbours = [
      ...Object.entries(REAL_TOOLS).map(([name, schema]) => offerOf(schema, name, 'desk')),
      offerOf({ type: 'object', properties: { on: { type: 'boolean' } } }, 'lamp.set', 'desk'),
    ];
    const names = neighbours.map(({ action }) => action.name);
    const shown = (offers: readonly Offer[]): readonly string[] =>
      toolsOf(offers)
        .filter(({ action }) => names.includes(action))
        .map(({ tool: { description: _, ...tool } }) => JSON.stringify(tool));
    const before = shown(neighbours);
    const hostile = [...REFUSED.map(([schema]) => schema), ...MENDED, ...GENERATED];
    const page = hostile.map((schema, n) => offerOf(schema, `page.a${n}`));
    expect(shown([...neighbours, ...page])).toEqual(before);
    const same = REFUSED.map(([schema], n) => offerOf(schema, 'lamp.set', `page-${n}`));
    expect(shown([...neighbours, ...same])).toEqual(before);
    expect(refusals(toolsOf([...neighbours, ...page]).map(({ tool }) => tool))).toEqual([]);
  });
});

describe('whatever a client advertises', () => {
  const hostile = [...REFUSED.map(([schema]) => schema), ...MENDED, ...GENERATED];

  it(`is taken by hosts and clients: ${hostile.length} schemas`, () => {
    expect(hostile.length).toBeGreaterThan(200);
    expect(refusals(hostile.map(listed))).toEqual([]);
    expect(hostile.flatMap((schema) => unmarkedTexts(listed(schema)))).toEqual([]);
  });

  it('is open if it lists a value twice, which earlier drafts forbid', () => {
    const twice = [[], []];
    const fault = 'the schema/enum has a value twice';
    expect(
      [
        { enum: twice },
        {
          enum: [
            { a: 1, b: 2 },
            { b: 2, a: 1 },
          ],
        },
      ].map((one) => schemaFault(one)),
    ).toEqual([fault, fault]);
    expect(schemaFault({ enum: [1, '1', [1], null] })).toBeNull();
  });

  it('is taken, marked and valid, or open', () => {
    const [draft7, draft2020] = [Ajv, Ajv2020].map((Made) => new Made({ strict: false, validateFormats: false }));
    fc.assert(
      fc.property(anySchema, fc.string({ unit: 'binary', maxLength: 200 }), (schema, summary) => {
        const [found] = toolsOf([offer('page.act', { schema: trustJson(JSON.stringify(schema)), summary })]);
        if (!found) throw new Error('there is no tool');
        expect(refusals([found.tool])).toEqual([]);
        expect(unmarkedTexts(found.tool)).toEqual([]);
        expect(JSON.stringify(found.tool.inputSchema).length).toBeLessThan(AGENT_SCHEMA_CHARS + 1_000);
        expect(draft2020?.validateSchema(found.tool.inputSchema)).toBe(true);
        if (schemaFault(schema) !== null || !isRecord(schema)) return;
        // What passes is valid by the dialect that it names.
        const judge = schema['$schema'] === undefined ? draft2020 : draft7;
        expect(judge?.validateSchema(withoutDialect(schema)), JSON.stringify(schema)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a real schema', () => {
  it('is listed with its properties: at least 95 of 100 tools', () => {
    const all = Object.entries(REAL_TOOLS);
    expect(all.length).toBeGreaterThanOrEqual(100);
    const open = all.filter(([, schema]) => judgeSchema(trustJson(JSON.stringify(schema)), 'desk').schema === null);
    expect(open.map(([name]) => name)).toEqual(['asana.create_task', 'notion.append_tree', 'onedrive.list_items']);
    expect(open.length).toBeLessThanOrEqual(0.05 * all.length);
    const tools = toolsOf(all.map(([name, schema]) => offerOf(schema, name, 'desk'))).map(({ tool }) => tool);
    expect(refusals(tools)).toEqual([]);
    expect(tools.flatMap(unmarkedTexts)).toEqual([]);
    for (const [name, schema] of all) {
      if (open.some(([other]) => other === name) || schema['properties'] === undefined) continue;
      const tool = tools.find(({ title }) => title === name);
      expect(tool && Object.keys(paramsOf(tool)), name).toEqual(Object.keys(schema['properties'] as object));
    }
  });

  it('of the demo is listed with its properties', () => {
    const actions = [...CONSOLE_ACTIONS, ...PHONE_ACTIONS, ...printerActions(async () => {})];
    for (const { name, schema } of actions)
      expect(judgeSchema(trustJson(JSON.stringify(schema)), 'desk').why, name).toBeNull();
  });

  it.each([
    [
      'a reference',
      { $defs: { at: { type: 'integer' } }, properties: { a: { $ref: '#/$defs/at' } } },
      { type: 'integer' },
    ],
    [
      'a choice with null',
      { properties: { a: { type: ['string', 'null'] } } },
      { anyOf: [{ type: 'string' }, { type: 'null' }] },
    ],
    ['a choice of one', { properties: { a: { oneOf: [{ type: 'string' }, { type: 'string' }] } } }, { type: 'string' }],
    [
      'what applies together',
      {
        properties: { a: { allOf: [{ type: 'object', properties: { b: { type: 'string' } } }, { required: ['b'] }] } },
      },
      { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] },
    ],
    [
      'what stands beside a choice',
      {
        properties: {
          a: {
            type: 'object',
            required: ['k'],
            anyOf: [{ properties: { k: { const: 'x' } } }, { properties: { k: { type: 'integer' } } }],
          },
        },
      },
      {
        anyOf: [
          {
            type: 'object',
            properties: {
              k: { type: 'string', enum: ['x'], description: 'From the client "page": one of these values.' },
            },
            required: ['k'],
          },
          { type: 'object', properties: { k: { type: 'integer' } }, required: ['k'] },
        ],
      },
    ],
    [
      'a default, a pattern and a title',
      { properties: { a: { type: 'string', title: 'Name', default: 'x', pattern: '^a' } } },
      { type: 'string', description: 'From the client "page": Name Default: "x". pattern: "^a".' },
    ],
    [
      'a list of places',
      { properties: { a: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false } } },
      { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    ],
    [
      'a required member without a property',
      { required: ['a'] },
      expect.objectContaining({ anyOf: expect.any(Array) }),
    ],
  ])('is written as hosts take it: %s', (_, schema, expected) => {
    expect(paramsOf(listed({ type: 'object', ...schema }))['a']).toEqual(expected);
  });

  it('keeps the params whose names are those of the arguments of a tool, though it is listed open', () => {
    const [found] = toolsOf([offerOf({ type: 'object', properties: { client: {}, 'a b': {} } })]);
    expect(found?.placing.names.client).toBe('callboard_client');
  });
});

describe('the share of its user', () => {
  it('holds what a catalog keeps, and gets it back', () => {
    const shares = createShares();
    const catalog = catalogOf(shares);
    const all = Object.entries(REAL_TOOLS).map(([name, schema]) => offerOf(schema, name));
    toolsOf(all, catalog);
    const held = shares.of('alice').held('advertised_bytes');
    expect(held).toBeGreaterThan(JSON.stringify(toolsOf(all).map(({ tool }) => tool)).length / 2);
    toolsOf(all, catalog);
    expect(shares.of('alice').held('advertised_bytes')).toBe(held);
    toolsOf(all.slice(0, 10), catalog);
    expect(shares.of('alice').held('advertised_bytes')).toBeLessThan(held / 4);
    catalog.close();
    expect(shares.of('alice').held('advertised_bytes')).toBe(0);
  });

  it('leaves the names of actions if it is used up', () => {
    const shares = createShares({ ...SHARE_BOUNDS, advertised_bytes: { guarantee: 5_000, total: 5_000 } });
    const all = Object.entries(REAL_TOOLS).map(([name, schema]) => offerOf(schema, name));
    const tools = toolsOf(all, catalogOf(shares));
    expect(tools).toHaveLength(all.length);
    expect(shares.of('alice').held('advertised_bytes')).toBeLessThan(5_000 + 300 * all.length);
    expect(refusals(tools.map(({ tool }) => tool))).toEqual([]);
  });
});
