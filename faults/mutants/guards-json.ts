/**
 * Lists mutants of the JSON code: copies of the sources that each lack one guard. `npm run mutants` shows that tests
 * notice each missing guard.
 */
import type { GuardMutant } from './mutant.ts';

/** The guard mutants of JSON: each leaves out one check of JSON text. */
export const JSON_GUARDS: readonly GuardMutant[] = [
  {
    name: 'object-depth-unbounded',
    says: 'objects of JSON may nest to any depth',
    file: 'protocol/json-scan.ts',
    find: 'read: ReadMember | null): number {\n  if (depth > JSON_DEPTH) return DEPTH;',
    replace: 'read: ReadMember | null): number {',
    judge: { test: 'test/core/json-scan.test.ts' },
  },
  {
    name: 'array-depth-unbounded',
    says: 'arrays of JSON may nest to any depth',
    file: 'protocol/json-scan.ts',
    find: 'read: ReadItem | null): number {\n  if (depth > JSON_DEPTH) return DEPTH;',
    replace: 'read: ReadItem | null): number {',
    judge: { test: 'test/core/json-scan.test.ts' },
  },
  {
    name: 'body-payload-depth-unbounded',
    says: 'a payload in a body may be as deep as the body',
    file: 'protocol/json-scan.ts',
    find: 'if (++depth > JSON_DEPTH) return DEPTH;',
    replace: '++depth;',
    judge: { test: 'test/relay/json-unchanged.test.ts' },
  },
  {
    name: 'rest-parts-unbounded',
    says: 'a body of REST is built however many members it has',
    file: 'rest/serve.ts',
    find: 'readShaped(json, bodyShape, ENVELOPE_PARTS)',
    replace: 'readShaped(json, bodyShape, 1e9)',
    judge: { test: 'test/relay/json-bounds.test.ts' },
  },
  {
    name: 'graphql-parts-unbounded',
    says: 'members of a GraphQL body are built however many parts they have',
    file: 'graphql/http/request.ts',
    find: "readShaped(json, 'plain', ENVELOPE_PARTS)",
    replace: "readShaped(json, 'plain', 1e9)",
    judge: { test: 'test/relay/json-bounds.test.ts' },
  },
  {
    name: 'escapes-unbounded',
    says: 'a string with very many escapes overflows the stack of a regular expression',
    file: 'protocol/json-scan.ts',
    find: '{0,1000}',
    replace: '*',
    judge: { test: 'test/core/json-scan.test.ts' },
  },
  {
    name: 'payload-parts-unbounded',
    says: 'a payload that the relay reads may have any number of members',
    file: 'gateway/payloads.ts',
    find: 'readMembers(payload, ENVELOPE_PARTS)',
    replace: 'readMembers(payload, 1e9)',
    judge: { test: 'test/relay/json-bounds.test.ts' },
  },
  {
    name: 'frame-parts-unbounded',
    says: 'an object inside such a payload may have any number of members',
    file: 'gateway/payloads.ts',
    find: 'return membersOf(json, ENVELOPE_PARTS) ??',
    replace: 'return membersOf(json, 1e9) ??',
    judge: { test: 'test/relay/json-bounds.test.ts' },
  },
  {
    name: 'numbers-as-doubles',
    says: 'numbers that are equal as doubles have the same digest',
    file: 'core/json.ts',
    find: 'if (PLAIN_INTEGER.test(written)) return written;',
    replace: 'if (PLAIN_INTEGER.test(written)) return JSON.stringify(JSON.parse(written));',
    judge: { test: 'test/core/json-canonical.test.ts' },
  },
  {
    name: 'digest-of-doubles',
    says: 'commands whose params differ beyond the precision of a double have the same digest',
    file: 'core/calls/call.ts',
    find: 'params : canonicalText(params);',
    replace: 'params : JSON.stringify(JSON.parse(params));',
    judge: { test: 'test/clients/raw-json-with-relay.test.ts' },
  },
  {
    name: 'json-checked-again',
    says: 'parts of a checked text are checked once more when they are read',
    file: 'protocol/json-scan.ts',
    find: '  if (!isNested(first)) return endOfScalar(text, at);',
    replace: '  if (true) return endOfValue(text, at, 0);',
    judge: { test: 'test/core/json-scan.test.ts' },
  },
];
