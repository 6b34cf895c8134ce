/** Tests the model of a command: which histories an order explains, and which none does. */
import { describe, expect, it } from 'vitest';
import {
  unexplained,
  type Claim,
  type Effect,
  type End,
  type Operation,
  type View,
} from '../../faults/simulate/linearize.ts';

const DONE: End = { outcome: 'completed', execution: 'reported_by_client', code: null, value: '"done"' };
const EXPIRED: End = { outcome: 'expired', execution: 'not_written', code: 'connect_timeout', value: null };
const UNKNOWN: End = { outcome: 'outcome_unknown', execution: 'may_have_run', code: 'response_timeout', value: null };
const LOST: End = { ...UNKNOWN, code: 'store_lost' };
const NOT_RECEIVED: End = { outcome: 'failed', execution: 'refused_by_client', code: 'not_received', value: null };
const CANCELLED: End = { outcome: 'cancelled', execution: 'not_written', code: null, value: null };
const STOPPED: End = { ...DONE, outcome: 'cancelled', value: '"half"' };

const operation = (from: number, to: number, claim: Claim | null, may: Effect | null = null): Operation => ({
  ...{ from, to, claim, may },
});
const OPEN = Infinity;
/** A call: `end` is what its caller is told; null: nothing. */
const call = (from: number, to: number, end: End | null): Operation =>
  operation(from, to, end && { kind: 'told', end }, { kind: 'admit' });
const refused = (from: number, to: number): Operation => operation(from, to, { kind: 'refused' });
const begun = (at: number): Operation => operation(at, at, { kind: 'begun' });
const reports = (from: number, end = DONE): Operation => operation(from, OPEN, null, { kind: 'end', end });
const cancel = (from: number, to: number, state: Extract<Claim, { kind: 'receipt' }>['state']): Operation =>
  operation(from, to, { kind: 'receipt', state }, { kind: 'cancel' });
const stage = (from: number, to: number, at: View['stage']): Operation =>
  operation(from, to, { kind: 'stage', stage: at });
const view = (at: View['stage'], version: number, change: Partial<View> = {}): View => ({
  ...{ stage: at, version, end: null, isCancelRequested: false, late: 0, deadline: 100 },
  ...change,
});
const reads = (from: number, to: number, what: View | null): Operation =>
  operation(from, to, { kind: 'read', view: what });

describe('a history of a command is explained if', () => {
  it.each<readonly [what: string, history: readonly Operation[]]>([
    ['nothing was asked', []],
    ['a handler returned what the caller got', [call(0, 9, DONE), begun(3), reports(5)]],
    [
      'a call was told before another one that repeats it',
      [call(0, 9, DONE), begun(3), reports(5), call(10, 12, DONE)],
    ],
    ['two calls at once admit it once', [call(0, 9, DONE), call(1, 9, DONE), begun(3), reports(5)]],
    [
      'a call without an answer admitted it later',
      [call(0, OPEN, null), reads(5, 6, null), reads(7, 8, view('waiting', 1))],
    ],
    ['a call without an answer did nothing', [call(0, OPEN, null), reads(5, 6, null)]],
    ['a refused call was asked again', [refused(0, 1), call(2, 9, EXPIRED)]],
    ['it expired before it was written', [call(0, 9, EXPIRED), reads(3, 4, view('waiting', 1))]],
    ['its end is unknown, and its handler begins later', [call(0, 9, UNKNOWN), begun(12), reports(13)]],
    [
      'its end is unknown, and a report comes too late',
      [
        ...[call(0, 9, UNKNOWN), begun(3), reports(12)],
        ...[
          reads(10, 11, view('ended', 4, { end: UNKNOWN })),
          reads(14, 15, view('ended', 5, { end: UNKNOWN, late: 1 })),
        ],
      ],
    ],
    ['what was never written is given up for a loss', [call(0, 9, LOST), reads(2, 3, view('waiting', 1))]],
    ['it never arrived', [call(0, 9, NOT_RECEIVED), reads(2, 3, view('dispatched', 2))]],
    ['a cancel came before the dispatch', [call(0, 9, CANCELLED), cancel(2, 4, 'cancelled')]],
    ['a cancel whose answer was lost is asked again', [call(0, 9, CANCELLED), cancel(2, 6, 'too_late')]],
    [
      'its handler stopped for a cancel',
      [call(0, 9, STOPPED), begun(3), cancel(4, 5, 'requested'), reports(7, STOPPED)],
    ],
    [
      'a cancel came before the call and after its end',
      [cancel(0, 1, 'not_found'), call(2, 9, EXPIRED), cancel(10, 11, 'too_late')],
    ],
    [
      'a result is no longer retained',
      [...[call(0, 9, DONE), begun(3), reports(5)], call(20, 21, { ...DONE, code: 'result_expired', value: null })],
    ],
    [
      'readers see it go on',
      [
        ...[call(0, 9, DONE), begun(3), reports(5), stage(0, 2, 'waiting')],
        ...[reads(0, 1, null), reads(1, 2, view('waiting', 1)), reads(2, 4, view('dispatched', 2))],
        ...[reads(3, 8, view('acknowledged', 3)), reads(6, 9, view('ended', 4, { end: DONE }))],
      ],
    ],
    [
      'two reads at once see both sides of a change',
      [call(0, 9, null), ...[reads(2, 6, view('dispatched', 2)), reads(2, 6, view('waiting', 1))]],
    ],
  ])('%s', (_, history) => {
    expect(unexplained(history)).toBeNull();
  });
});

describe('no order explains that', () => {
  it.each<readonly [what: string, history: readonly Operation[]]>([
    ['a caller got what no handler returned', [call(0, 9, DONE)]],
    ['a caller got the result before its handler had returned', [call(0, 9, DONE), begun(3), reports(10)]],
    ['a caller got another result', [call(0, 9, { ...DONE, value: '"other"' }), begun(3), reports(5)]],
    ['a handler began that nobody had called', [begun(3)]],
    ['a handler began before the call', [begun(0), call(1, 9, UNKNOWN)]],
    ['a handler began twice', [call(0, 9, DONE), begun(3), reports(5), begun(6)]],
    ['a handler began after the end was proven', [call(0, 9, EXPIRED), begun(12)]],
    ['a handler began although nothing had arrived', [begun(3), call(0, 9, NOT_RECEIVED)]],
    ['what was acknowledged never arrived', [call(0, 9, NOT_RECEIVED), reads(2, 3, view('acknowledged', 3))]],
    ['what had been written expired', [call(0, 9, EXPIRED), reads(2, 3, view('dispatched', 2))]],
    ['what was never written may have run', [...[call(0, 9, UNKNOWN), reads(10, 11, view('waiting', 1))]]],
    ['a repeated call was told another end', [call(0, 9, UNKNOWN), begun(3), reports(5), call(10, 12, DONE)]],
    ['a call was refused although it was admitted', [call(0, 9, EXPIRED), refused(10, 11)]],
    ['a refused call was admitted', [refused(0, 1), reads(2, 3, view('waiting', 1))]],
    ['what nobody called was cancelled', [cancel(0, 1, 'cancelled')]],
    ['it was cancelled before the dispatch, and ran', [call(0, 9, null), cancel(2, 4, 'cancelled'), begun(5)]],
    [
      'it was cancelled before the dispatch, and completed',
      [call(0, 9, DONE), begun(1), reports(5), cancel(2, 4, 'cancelled')],
    ],
    ['it was cancelled twice', [call(0, 9, CANCELLED), cancel(2, 4, 'cancelled'), cancel(5, 6, 'cancelled')]],
    ['its client was asked to stop after its end', [call(0, 9, EXPIRED), cancel(10, 11, 'requested')]],
    [
      'a cancel was too late before the end',
      [call(0, OPEN, null), cancel(2, 4, 'too_late'), reads(5, 6, view('dispatched', 2))],
    ],
    ['it was cancelled, and nobody had asked for it', [call(0, 9, CANCELLED)]],
    [
      'the request to cancel it was forgotten',
      [...[call(0, OPEN, null), cancel(2, 4, 'requested'), reads(5, 6, view('dispatched', 3))]],
    ],
    [
      'a cancel did not find what was admitted',
      [stage(0, 1, 'waiting'), call(0, OPEN, null), cancel(2, 4, 'not_found')],
    ],
    [
      'a reader got an older record than one before',
      [...[call(0, OPEN, null), reads(2, 3, view('dispatched', 2)), reads(4, 5, view('waiting', 1))]],
    ],
    [
      'a reader got an older version',
      [call(0, OPEN, null), reads(2, 3, view('waiting', 2)), reads(4, 5, view('waiting', 1))],
    ],
    [
      'two readers got one version with different content',
      [
        ...[call(0, 9, UNKNOWN), reads(10, 11, view('ended', 4, { end: UNKNOWN }))],
        reads(12, 13, view('ended', 4, { end: UNKNOWN, late: 1 })),
      ],
    ],
    [
      'late reports were forgotten',
      [
        ...[call(0, 9, UNKNOWN), begun(3), reports(4), reads(10, 11, view('ended', 5, { end: UNKNOWN, late: 1 }))],
        reads(12, 13, view('ended', 6, { end: UNKNOWN })),
      ],
    ],
    ['a reader got no record of what a caller was told', [call(0, 9, EXPIRED), reads(10, 11, null)]],
    [
      'a reader saw it live after a caller was told its end',
      [...[call(0, 9, DONE), begun(3), reports(5), reads(10, 11, view('acknowledged', 3))]],
    ],
    [
      'a record has another end than the caller was told',
      [...[call(0, 9, UNKNOWN), begun(3), reports(5), reads(10, 11, view('ended', 4, { end: DONE }))]],
    ],
    ['a caller saw it dispatched, and it was never written', [call(0, 9, EXPIRED), stage(0, 5, 'dispatched')]],
  ])('%s', (_, history) => {
    expect(unexplained(history)).toMatch(/^no order explains /);
  });

  it('names what cannot be explained, and what could', () => {
    expect(unexplained([call(0, 9, EXPIRED), reads(10, 11, null)])).toBe(
      'no order explains {"kind":"read","view":null} from 10 to 11; after ' +
        `{"kind":"told","end":${JSON.stringify(EXPIRED)}} from 0 to 9`,
    );
  });
});
