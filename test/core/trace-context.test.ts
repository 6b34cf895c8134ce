/** Tests the headers traceparent and tracestate of W3C Trace Context. */
import { describe, expect, it } from 'vitest';
import { traceContextOf } from '../../src/core/trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const PARENT = `00-${TRACE}-${SPAN}-01`;

describe('traceparent', () => {
  it('is the trace, the parent span and the flags', () => {
    expect(traceContextOf({ traceparent: PARENT })).toEqual({
      traceId: TRACE,
      parentSpanId: SPAN,
      traceFlags: '01',
      traceState: null,
    });
  });

  it.each([
    ['an unsampled trace', `00-${TRACE}-${SPAN}-00`, '00'],
    ['a random trace id', `00-${TRACE}-${SPAN}-03`, '03'],
    ['flags without a meaning, which are dropped', `00-${TRACE}-${SPAN}-ff`, '03'],
    ['a later version', `01-${TRACE}-${SPAN}-01`, '01'],
    ['a later version with more members', `cc-${TRACE}-${SPAN}-01-what-the-future-holds`, '01'],
    ['spaces around it', ` ${PARENT} `, '01'],
  ])('%s', (_, traceparent, traceFlags) => {
    expect(traceContextOf({ traceparent })).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, traceFlags });
  });

  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['of the version ff', `ff-${TRACE}-${SPAN}-01`],
    ['of version 00 with more members', `${PARENT}-more`],
    ['of a later version with more text that is no member', `01-${TRACE}-${SPAN}-01more`],
    ['in upper case', PARENT.toUpperCase()],
    ['with a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['with a span id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['with a short trace id', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['with a long span id', `00-${TRACE}-${SPAN}0-01`],
    ['without flags', `00-${TRACE}-${SPAN}`],
    ['given twice', `${PARENT}, ${PARENT}`],
    ['of other characters', `00-${TRACE.replace('a', 'g')}-${SPAN}-01`],
  ])('is ignored when it is %s', (_, traceparent) => {
    expect(traceContextOf({ traceparent, tracestate: 'vendor=1' })).toBeUndefined();
  });
});

describe('tracestate', () => {
  const stateOf = (tracestate: string): string | null | undefined =>
    traceContextOf({ traceparent: PARENT, tracestate })?.traceState;

  it.each([
    ['one member', 'vendor=1', 'vendor=1'],
    ['several, with spaces and empty members', 'a=1 ,\t, b@tenant=x y/z,', 'a=1,b@tenant=x y/z'],
    ['a key that begins with a digit', '0a_-*/=1', '0a_-*/=1'],
    ['32 members', Array.from({ length: 32 }, (_, i) => `k${i}=1`).join(), expect.stringContaining('k31=1')],
  ])('%s', (_, text, kept) => {
    expect(stateOf(text)).toEqual(kept);
  });

  it.each([
    ['empty', ''],
    ['a member without a value', 'a'],
    ['an empty key', '=1'],
    ['a key in upper case', 'A=1'],
    ['a value with an equals sign', 'a=b=c'],
    ['a value that is not ASCII', 'a=ü'],
    ['one key twice', 'a=1,a=2'],
    ['33 members', Array.from({ length: 33 }, (_, i) => `k${i}=1`).join()],
  ])('is left out when it is %s, and the trace is kept', (_, text) => {
    expect(stateOf(text)).toBeNull();
  });

  it('is cut to 512 characters: long members are removed first, then the last ones', () => {
    const long = `long=${'x'.repeat(200)}`;
    const short = Array.from({ length: 10 }, (_, i) => `k${i}=${'y'.repeat(40)}`);
    expect(stateOf([long, ...short].join())).toBe(short.join());
    const many = Array.from({ length: 20 }, (_, i) => `m${i}=${'z'.repeat(40)}`);
    const kept = stateOf(many.join()) ?? '';
    expect(kept.length).toBeLessThanOrEqual(512);
    expect(many.join().startsWith(`${kept},`)).toBe(true);
    expect(kept.split(',').length).toBe(11);
  });
});
