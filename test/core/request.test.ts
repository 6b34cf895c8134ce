/** Tests the check of the input of an invocation, and its digest. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InvokeRequest } from '../../src/core/core.ts';
import { NO_DIGEST } from '../../src/core/commands/command.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { trustJson } from '../../src/core/json.ts';
import { checkInvoke } from '../../src/core/calls/call.ts';
import { createCrypto } from '../../src/platform/system.ts';

const crypto = createCrypto('a key of the test');

/** A value for a member of the input, and whether it is wrong. */
type Given<T> = readonly [value: T, wrong: boolean];

const right = <T>(...values: T[]): fc.Arbitrary<Given<T>> =>
  fc.constantFrom(...values.map((value) => [value, false] as const));
const wrong = <T>(...values: T[]): fc.Arbitrary<Given<T>> =>
  fc.constantFrom(...values.map((value) => [value, true] as const));
const either = <T>(good: readonly T[], bad: readonly T[]): fc.Arbitrary<Given<T>> =>
  fc.oneof({ weight: 3, arbitrary: right(...good) }, { weight: 1, arbitrary: wrong(...bad) });

const TEXT: readonly (string | null | undefined)[] = [undefined, null, 'x1'];

const INPUTS = {
  client_id: either(['c1', 'a.b:c@d~e-f_g'], ['', 'a b', 'é', 'x'.repeat(129)]),
  action: either(['open', 'a.b'], ['', '1a', 'a b']),
  command_id: either(TEXT, ['', 'a/b']),
  instance_id: either(TEXT, ['', 'a/b']),
  connect_within_ms: either([undefined, null, 0, 5_000], [-1, 1.5, Number.NaN, 10 ** 9]),
  respond_within_ms: either([undefined, null, 30_000], [-1, 1.5, Number.NaN, 10 ** 9]),
  trace_id: either(TEXT, ['a\nb', 'x'.repeat(1_025)]),
  parent_span_id: either(TEXT, ['a\u0000', 'x'.repeat(1_025)]),
  params: either([null, '{}', ' {"a":1}'], ['[]', '1', '"{}"']),
};

function requestOf(given: { readonly [K in keyof typeof INPUTS]: Given<unknown> }): InvokeRequest {
  const of = <T>(name: keyof typeof INPUTS): T => given[name][0] as T;
  return {
    userId: 'alice',
    clientId: of('client_id'),
    action: of('action'),
    commandId: of('command_id'),
    instanceId: of('instance_id'),
    connectWithinMs: of('connect_within_ms'),
    respondWithinMs: of('respond_within_ms'),
    traceId: of('trace_id'),
    parentSpanId: of('parent_span_id'),
    params: of('params'),
  };
}

describe('the check of an invocation', () => {
  it('names each wrong input and no other, whichever are wrong together', () => {
    fc.assert(
      fc.property(fc.record(INPUTS), (given) => {
        const names = Object.entries(given).flatMap(([name, [, isWrong]]) => (isWrong ? [name] : []));
        let named: readonly string[] = [];
        try {
          checkInvoke(crypto, requestOf(given));
        } catch (error) {
          if (!(error instanceof CallboardError)) throw error;
          named = (error.details.errors ?? []).map(({ parameter }) => parameter);
        }
        expect([...named].sort()).toEqual(names.sort());
      }),
      { numRuns: 2_000 },
    );
  });

  it('digests an invocation only where its caller chose the id', () => {
    const target = { userId: 'alice', clientId: 'c1', action: 'open', params: trustJson('{"a":1}') };
    expect(checkInvoke(crypto, target).digest).toBe(NO_DIGEST);
    expect(checkInvoke(crypto, { ...target, commandId: null }).digest).toBe(NO_DIGEST);
    const chosen = checkInvoke(crypto, { ...target, commandId: 'k1' }).digest;
    expect(chosen).toHaveLength(43);
    expect(checkInvoke(crypto, { ...target, commandId: 'k2', params: trustJson('{ "a":1.0}') }).digest).toBe(chosen);
    expect(checkInvoke(crypto, { ...target, commandId: 'k1', params: null }).digest).not.toBe(chosen);
  });
});
