/** Tests what the catalog of a user keeps if many clients advertise the same actions in different words. */
import { describe, expect, it } from 'vitest';
import { trustJson } from '../../src/core/json.ts';
import { AGENT_VARIANTS } from '../../src/core/limits.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { catalogOf, offer, shownOf, takeOver, toolsOf, type Offer } from './kit/catalogs.ts';

const MANY = 50;
const HINTS = { readOnly: true, destructive: false, idempotent: true, openWorld: false };

function schemaOf(name: string, type = 'string') {
  return trustJson(JSON.stringify({ type: 'object', properties: { [name]: { type } }, additionalProperties: false }));
}

/** Returns what this many clients advertise, each of which describes the action in its own words. */
function described(clients: number, over: (n: number) => Partial<Offer['action']> = () => ({})): readonly Offer[] {
  return Array.from({ length: clients }, (_, n) =>
    offer('lamp.set', { description: `In room ${n}.`, schema: schemaOf('on'), ...over(n) }, `c${10 + n}`),
  );
}

describe('an action that many clients describe differently', () => {
  it('shows the words of the first of them, and its schema and hints if all agree on them', () => {
    const [found] = toolsOf(described(MANY, () => ({ effects: HINTS })));
    const { description, inputSchema, annotations } = found!.tool;
    expect(description).toContain('Clients describe this action differently');
    expect(description.match(/From the client/g)).toHaveLength(AGENT_VARIANTS);
    for (let n = 0; n < AGENT_VARIANTS; n++)
      expect(description).toContain(`From the client "c${10 + n}": In room ${n}.`);
    expect(inputSchema).toMatchObject({ properties: { on: { type: 'string' } }, additionalProperties: false });
    expect(annotations).toMatchObject({ readOnlyHint: true, idempotentHint: true });
  });

  it('lists the schema of the first of them, whatever schemas many others have, and says why', () => {
    const others = described(MANY, (n) => ({ schema: n === 0 ? schemaOf('on') : trustJson(`{"type":"list${n}"}`) }));
    const catalog = catalogOf();
    const [found] = toolsOf(others, catalog);
    expect(found!.tool.inputSchema).toMatchObject({ properties: { on: { type: 'string' } } });
    expect(catalog.whyOpen(others[0]!.action)).toBeNull();
    expect(catalog.whyOpen(others[1]!.action)).toBe('the schema/type is no type');
    expect(catalog.whyOpen(others[MANY - 1]!.action)).toContain(`only the first ${AGENT_VARIANTS} variants`);
  });

  it('may do anything if one of many says that it does', () => {
    const harmful = { effects: { ...HINTS, readOnly: false, destructive: true } };
    const [found] = toolsOf(described(MANY, (n) => (n < MANY - 1 ? { effects: HINTS } : harmful)));
    expect(found!.tool.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  });

  it('keeps a bounded part of the share of its user, and gives it back', () => {
    const shares = createShares();
    const held = () => shares.of('alice').held('advertised_bytes');
    const catalog = catalogOf(shares);
    takeOver(catalog, described(AGENT_VARIANTS + 1));
    const bounded = held();
    const schema = (n: number) => ({ schema: schemaOf(`p${n}`) });
    takeOver(catalog, described(MANY, schema));
    expect(held()).toBeLessThan(2 * bounded);
    takeOver(catalog, described(MANY));
    takeOver(catalog, described(1));
    expect(held()).toBeLessThan(bounded);
    catalog.close();
    expect(held()).toBe(0);
  });

  it('shows the same words when others come', () => {
    const catalog = catalogOf();
    const [before] = toolsOf(described(AGENT_VARIANTS + 1), catalog);
    const early = offer('lamp.set', { description: 'New.', schema: schemaOf('on') }, 'a-first');
    expect(toolsOf([early, ...described(AGENT_VARIANTS + 1)], catalog)[0]?.tool).toEqual(before?.tool);
  });

  it('is found, and has a tool, for one who may call it only where its words are not shown', () => {
    const catalog = catalogOf();
    const last = { ...offer('lamp.set', { description: 'Of the web.', schema: schemaOf('on') }, 'web') };
    takeOver(catalog, [...described(AGENT_VARIANTS), { ...last, clientType: 'web' }]);
    const allowed = (_: string, type: string): boolean => type === 'web';
    const shown = shownOf(catalog, allowed);
    expect(shown.tools.map(({ tool }) => tool.description)).toEqual([
      'From the client "web": no description is shown.',
    ]);
    expect(shown.tools[0]?.tool.inputSchema['properties']).toMatchObject({ on: { type: 'string' } });
    expect(shown.texts.join()).not.toContain('room');
    const steps = catalog.find(['lamp'], shown, allowed);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    expect(step.value).toMatchObject([{ action: 'lamp.set', tool: 'lamp_set' }]);
  });
});

describe('the work of a catalog', () => {
  /** Returns the steps that it takes to take over 50 clients with 200 actions each. */
  function steps(texts: (client: number) => string): number {
    const all = Array.from({ length: MANY }, (_, c) =>
      Array.from({ length: 200 }, (_, n) => {
        const description = `${texts(c)} ${'x'.repeat(500)}`;
        return offer(`act${n}`, { description, schema: schemaOf('on') }, `c${c}`);
      }),
    );
    return takeOver(catalogOf(), all.flat());
  }

  it('is small for further clients, whatever they advertise', () => {
    const alike = steps(() => 'The same.');
    const different = steps((client) => `Client ${client}.`);
    expect(alike).toBeLessThan(30);
    expect(different).toBeLessThan(alike + 4 * AGENT_VARIANTS * 5);
  });

  it('is that of one client for those whose list is the same object', () => {
    const { action } = offer('lamp.set', { description: 'x'.repeat(50_000) });
    const actions = Array.from({ length: 20 }, (_, n) => ({ ...action, name: `act${n}` }));
    const rows = (clients: number) =>
      Array.from({ length: clients }, (_, n) => ({
        ...{ clientId: `c${n}`, clientType: 'browser' as const, connectedAt: n, live: true, actions },
      }));
    const [one, many] = [1, MANY].map((clients) => [...catalogOf().update(rows(clients))].length);
    expect(many).toBe(one);
  });
});
