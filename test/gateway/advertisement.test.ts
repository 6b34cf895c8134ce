/** Tests reading what a client advertises: exactness and bounds. */
import { describe, expect, test } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { ActionLists, readAdvertisement as readWith, type Advertisement } from '../../src/gateway/payloads.ts';

function readAdvertisement(payload: string | null): Advertisement {
  return readWith(payload, new ActionLists());
}

function faultOf(payload: string): string {
  try {
    readAdvertisement(payload);
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'invalid_argument') return error.message;
    throw error;
  }
  throw new Error('it was taken');
}

describe('the advertisement of a client', () => {
  test('is kept exactly: spaces, spellings of numbers, order, repeated and unusual members', () => {
    const schema = '{ "type":"object","b":1.0,"a":[1e2,\t-0, 12345678901234567890123],"__proto__":{"x":1},"a":2 }';
    const metadata = '{"z": "\\u00e9\\ud83d\\ude00 \\" ] } ,", "n": null}';
    const read = readAdvertisement(
      `{"metadata" : ${metadata} ,"actions":[ {"schema":${schema},"name":"a.b","metadata":[ 1 ,2]} ]}`,
    );
    expect(read.metadata).toBe(metadata);
    expect(read.actions).toEqual([
      {
        name: 'a.b',
        summary: null,
        description: null,
        version: null,
        checksArguments: null,
        schema,
        metadata: '[ 1 ,2]',
      },
    ]);
  });

  test.each([
    ['{', /^payload/],
    ['[]', /^payload/],
    ['"text"', /^payload/],
    ['', /^payload/],
    ['{"actions":{}}', /^actions: an array/],
    ['{"actions":[1]}', /^actions\[0\]: an object/],
    ['{"actions":[{}]}', /^actions\[0\]\.name: required/],
    ['{"actions":[{"name":7}]}', /^actions\[0\]\.name: a string/],
    ['{"actions":[{"name":"9lives"}]}', /^actions\[0\]\.name: expected a letter/],
    ['{"actions":[{"name":"a b"}]}', /^actions\[0\]\.name/],
    ['{"actions":[{"name":"a"},{"name":"b"},{"name":"a"}]}', /^actions: a appears twice/],
    ['{"actions":[{"name":"a","summary":1}]}', /^actions\[0\]\.summary: a string/],
    ['{"actions":[{"name":"a","description":{}}]}', /^actions\[0\]\.description: a string/],
    ['{"actions":[{"name":"a","version":1.5}]}', /^actions\[0\]\.version: a string/],
    ['{"actions":[{"name":"a","checks_arguments":"yes"}]}', /^actions\[0\]\.checks_arguments/],
    ['{"actions":[{"name":"a","schema":[]}]}', /^actions\[0\]\.schema: an object, true or false/],
    ['{"actions":[{"name":"a","schema":"x"}]}', /^actions\[0\]\.schema/],
    [`{"metadata":"${'x'.repeat(16 * 1024 - 1)}"}`, /^metadata: at most 16384/],
    [`{"metadata":"${'é'.repeat(8 * 1024)}"}`, /^metadata: at most 16384/],
    [`{"actions":[{"name":"a","metadata":"${'x'.repeat(64 * 1024)}"}]}`, /^actions\[0\]: at most 65536/],
    [`{"actions":[${Array.from({ length: 257 }, (_, i) => `{"name":"a${i}"}`).join()}]}`, /^actions: at most 256/],
    [`{"metadata":${'['.repeat(5000)}${']'.repeat(5000)}}`, /^payload: .*nested/],
  ])('%.60s is refused by name', (payload, expected) => {
    expect(faultOf(payload)).toMatch(expected);
  });

  test('is accepted exactly at each bound', () => {
    const metadata = `"${'x'.repeat(16 * 1024 - 2)}"`;
    expect(readAdvertisement(`{"metadata":${metadata}}`).metadata).toHaveLength(16 * 1024);
    const action = `{"name":"a","metadata":"${'x'.repeat(64 * 1024 - 26)}"}`;
    expect(action).toHaveLength(64 * 1024);
    expect(readAdvertisement(`{"actions":[${action}]}`).actions).toHaveLength(1);
    const many = Array.from({ length: 256 }, (_, i) => `{"name":"a${i}"}`).join();
    expect(readAdvertisement(`{"actions":[${many}]}`).actions).toHaveLength(256);
    const deep = `${'['.repeat(199)}${']'.repeat(199)}`;
    expect(readAdvertisement(`{"metadata":${deep}}`).metadata).toBe(deep);
  });

  test('with more members than are read is refused before anything is built of it', () => {
    const members = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join();
    expect(readAdvertisement(`{${members(1000)}}`)).toEqual({ metadata: null, actions: [] });
    expect(faultOf(`{${members(1001)}}`)).toMatch(/^payload: at most 1000 members/);
    const metadata = `{${members(1200)}}`;
    expect(readAdvertisement(`{"metadata":${metadata}}`).metadata).toBe(metadata);
  });
});
