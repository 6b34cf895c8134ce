/** Tests that the JSON writer leaves events with errors to graphql-js. */
import { executeSubscriptionEvent, parse, validateSubscriptionArgs } from 'graphql';
import { describe, expect, it } from 'vitest';
import { toJson, writeJson } from '../../src/core/json.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { createEventWriter } from '../../src/graphql/writer/compile.ts';

const contextValue = { forget() {} };

function subscribed(query: string, variables: Readonly<Record<string, unknown>> = {}) {
  const args = validateSubscriptionArgs({
    schema,
    document: parse(query),
    contextValue,
    variableValues: { id: 's', ...variables },
  });
  if (!('schema' in args)) throw new Error('The test asks for nothing that can be heard.');
  return args;
}

const eventOf = (data: unknown, missed = 0) => ({
  event: {
    name: 'news',
    data: data === undefined ? null : toJson(data),
    messageId: 'm"1',
    publishedAt: 1_780_000_000_000,
  },
  missed,
});
const ask = (selection: string): string => `subscription ($id: ID!, $less: Boolean = false) ${selection}`;

describe('the writer of events', () => {
  it.each([
    ['all fields', ask('{ siteEvents(sessionId: $id) { name data messageId publishedAt missed __typename } }')],
    ['aliases, twice', ask('{ x: siteEvents(sessionId: $id) { b: name a: name name b: name } }')],
    [
      'fragments',
      `${ask('{ siteEvents(sessionId: $id) { ...F ... on SiteEvent { missed } ... { data } } }')} fragment F on SiteEvent { name messageId }`,
    ],
    ['conditions', ask('{ siteEvents(sessionId: $id) { name @skip(if: $less) data @include(if: $less) missed } }')],
  ])('writes exactly the text of graphql-js: %s', (_, query) => {
    for (const variables of [{}, { less: true }]) {
      const args = subscribed(query, variables);
      const write = createEventWriter(args);
      for (const event of [
        eventOf({ '"': ['\u2028\n', 1e21, null] }, 3),
        eventOf(undefined),
        eventOf(0),
        eventOf('x'),
      ]) {
        const result = executeSubscriptionEvent({ ...args, rootValue: event });
        expect(write?.(event, contextValue)).toBe(writeJson('data' in result && result.data));
      }
    }
  });

  it('gives up an event that would be an error', () => {
    const write = createEventWriter(subscribed(ask('{ siteEvents(sessionId: $id) { publishedAt name } }')));
    expect(write?.(eventOf(1), contextValue)).toMatch(/^\{"siteEvents":/);
    expect(write?.({ event: { name: null, publishedAt: 1 }, missed: 0 }, contextValue)).toBeNull();
    expect(write?.({ event: null, missed: 0 }, contextValue)).toBeNull();
  });
});
