/** Tests that `callboard conformance` finds what is wrong with a client: one wrong client for each claim. */
import { describe, expect, test, vi } from 'vitest';
import { allClaims } from '../../../src/cli/run/conformance.ts';
import { checkWrong, TOKEN, type Fault, type Place, type WireFrame } from './kit/wrong-client.ts';

vi.setConfig({ maxConcurrency: 12 });

const isEnd = ({ header }: WireFrame): boolean => ['result', 'error', 'cancelled'].includes(header.type);
const idOf = ({ header }: WireFrame): string => String(header['command_id'] ?? '');
/** Returns whether this is called for the first time in a run. */
const once = ({ memory }: Place, what: string): boolean => !memory.has(what) && memory.set(what, true) !== undefined;
const with_ = (frame: WireFrame, members: Record<string, unknown>): WireFrame => ({
  ...frame,
  header: { ...frame.header, ...members },
});
const dropping =
  (type: string) =>
  (frame: WireFrame): readonly WireFrame[] =>
    frame.header.type === type ? [] : [frame];
const frame = (header: WireFrame['header'], payload: string | null = null): WireFrame => ({ header, payload });

/** Returns the payload of a hello with these actions. */
const withActions = (it: WireFrame, actions: readonly object[]): string =>
  JSON.stringify({ ...(JSON.parse(it.payload ?? '{}') as object), metadata: null, actions });

/** A client that reconnects although the relay says not to. */
const comesBackAfter = (code: number): Fault => ({
  down: (it) => [it.header['code'] === code ? with_(it, { code: 4450, reconnect: true }) : it],
});

/** A client that reports a result which is too large as a failure of its handler. */
const unavailable = (it: WireFrame): WireFrame =>
  String(it.header['message']).startsWith('The result is larger') ? with_(it, { code: 'handler_failed' }) : it;

/** A client that closes its socket when a frame comes that it does not expect. */
const closesOn = (is: (it: WireFrame) => boolean): Fault => ({
  down(it, place) {
    if (!is(it)) return [it];
    place.close(1000);
    return [];
  },
});

/** A client that runs a repeated command again: under another id, which its ends do not show. */
const runsAgain = (when: 'running' | 'ended'): Fault => ({
  down(it, { memory }) {
    const id = idOf(it);
    if (it.header.type !== 'command') return [it];
    const before = memory.get(id);
    if (before === undefined) memory.set(id, 'running');
    return [before === when ? with_(it, { command_id: `${id}~again` }) : it];
  },
  up(it, { memory }) {
    const id = idOf(it).replace('~again', '');
    if (isEnd(it)) memory.set(id, 'ended');
    return [id === '' ? it : with_(it, { command_id: id })];
  },
});

/** The wrong client of each claim, by the claim's name. */
const FAULTS: Readonly<Record<string, Fault>> = {
  subprotocol: { offersNothing: true },
  token: { url: (url) => `${url}?token=${TOKEN}` },
  hello: { up: (it) => (it.header.type === 'hello' ? [it, frame({ type: 'pong' })] : [it]) },
  actions: { up: (it) => [it.header.type === 'hello' ? { ...it, payload: withActions(it, [{ name: 'other' }]) } : it] },
  result: { up: (it, place) => (it.header.type === 'result' && once(place, 'twice') ? [it, it] : [it]) },
  no_params: { down: (it) => [it.header.type === 'command' && it.payload === null ? { ...it, payload: '[]' } : it] },
  payload_text: { down: (it) => [{ ...it, payload: it.payload?.split('\n').at(-1) ?? null }] },
  ack: { up: dropping('ack') },
  handler_failed: {
    up: (it) => [
      it.header['code'] === 'handler_failed' ? with_(it, { message: 'Error: x\n    at echo (a.js:1:2)' }) : it,
    ],
  },
  unknown_action: {
    up: (it) => (it.header['code'] === 'unknown_action' ? [frame({ type: 'ack', command_id: idOf(it) }), it] : [it]),
  },
  arguments_invalid: {
    up: (it) => [it.header['code'] === 'arguments_invalid' ? with_(it, { code: 'handler_failed' }) : it],
  },
  context_gone: { down: (it) => [it.header.type === 'command' ? with_(it, { context_id: undefined }) : it] },
  progress: {
    up(it, { memory }) {
      if (it.header.type === 'progress') memory.set(idOf(it), it);
      const late = it.header.type === 'result' ? memory.get(idOf(it)) : undefined;
      return late === undefined ? [it] : [it, late as WireFrame];
    },
  },
  cancel: { down: dropping('cancel') },
  cancel_ignored: {
    down(it, place) {
      if (it.header.type === 'cancel' && idOf(it).endsWith('unknown'))
        place.send({ type: 'cancelled', command_id: idOf(it) });
      return [it];
    },
  },
  pong: { up: dropping('pong') },
  repeat_running: runsAgain('running'),
  repeat_ended: runsAgain('ended'),
  remaining_ms: { down: (it) => [it.header['remaining_ms'] === 1_000 ? with_(it, { remaining_ms: 600_000 }) : it] },
  site_params: {
    down(it, { memory }) {
      if (it.payload?.includes('__cooperative')) memory.set(idOf(it), it.payload);
      return [it];
    },
    up(it, { memory }) {
      const given = memory.get(idOf(it));
      return [it.header.type === 'result' && typeof given === 'string' ? { ...it, payload: given } : it];
    },
  },
  unknown_ignored: closesOn(({ header }) => header.type === 'conformance_news'),
  long_frame: closesOn(({ payload }) => (payload?.length ?? 0) > 1024 * 1024),
  deep_params: closesOn(({ payload }) => payload?.includes('{"value":{"value":{') === true),
  large_result: {
    up: (it) => [it.header['code'] === 'result_unavailable' && idOf(it) !== '' ? unavailable(it) : it],
  },
  frames_per_message: {
    // The last of the many commands at once is answered with too many frames.
    up: (it, { index }) =>
      it.header.type === 'result' && it.payload === '{"value":31}' && index === 0
        ? [it, ...Array.from({ length: 64 }, () => frame({ type: 'pong' }))]
        : [it],
  },
  reconnect: { isDead: (index) => index > 0 },
  same_instance: {
    up: (it, { index }) => [
      it.header.type === 'hello' ? with_(it, { instance_id: `${String(it.header['instance_id'])}-${index}` }) : it,
    ],
  },
  received: {
    up: (it) => [
      it.header.type === 'hello'
        ? { ...it, payload: it.payload?.replace(/"received":.*/, '"received":[]}') ?? null }
        : it,
    ],
  },
  kept_ends: {
    up(it, { memory, index }) {
      if (!isEnd(it)) return [it];
      const before = memory.get(idOf(it)) ?? index;
      memory.set(idOf(it), before);
      // An end of the second socket is kept, as the claim about refused ends needs it.
      return before === 0 && index === 1 ? [] : [it];
    },
  },
  runs_on: {
    down(it, { memory, index }) {
      if (it.header.type === 'command') memory.set(idOf(it), index);
      return [it];
    },
    up: (it, { memory, index }) =>
      isEnd(it) && it.payload?.includes('runs on') && memory.get(idOf(it)) !== index ? [] : [it],
  },
  one_frame_per_message: { down: (it) => [it.header.type === 'welcome' ? with_(it, { frames_per_message: 64 }) : it] },
  draining: { down: (it) => [it.header.type === 'bye' ? with_(it, { after_ms: 0 }) : it] },
  acknowledged_ends: {
    down: (it, { index }) => (it.header.type === 'result_ack' && index === 1 ? [] : [it]),
  },
  refused_ends: {
    down: (it) => [it.header['code'] === 'store_unavailable' ? with_(it, { code: 'invalid_argument' }) : it],
  },
  silence: { down: (it) => [it.header.type === 'welcome' ? with_(it, { dead_ms: 600_000 }) : it] },
  replaced: comesBackAfter(4409),
  new_instance: { instanceId: 'always-the-same' },
  unauthenticated: comesBackAfter(4401),
  forbidden: comesBackAfter(4403),
  protocol_error: comesBackAfter(4400),
  closing: {
    up(it, { memory }) {
      if (it.header.type === 'closing') memory.set('closing', true);
      return isEnd(it) && memory.has('closing') ? [] : [it];
    },
  },
  frames: { up: (it, place) => (it.header.type === 'ack' && once(place, 'bad') ? [frame({ type: 'ack' }), it] : [it]) },
};

/** The claims about features of which a client can have less, and never wrongly. */
const NEVER_WRONG = ['exact_numbers'];

const verdictsOf = (results: Awaited<ReturnType<typeof checkWrong>>, verdict: string): readonly string[] =>
  [...results.values()].filter((result) => result.verdict === verdict).map(({ name }) => name);

test('each claim has its wrong client', () => {
  const names = allClaims().map(({ name }) => name);
  expect([...Object.keys(FAULTS), ...NEVER_WRONG].toSorted()).toEqual(names.toSorted());
});

describe.concurrent('the own runtime', () => {
  test('passes each claim', async ({ expect }) => {
    const results = await checkWrong({});
    expect([...results.values()].filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect([...results.keys()]).toEqual(allClaims().map(({ name }) => name));
  });

  test('passes when the author starts it, without the claims that need a restart', async ({ expect }) => {
    const results = await checkWrong({}, { restarts: false });
    expect(verdictsOf(results, 'fails')).toEqual([]);
    expect(verdictsOf(results, 'not_run')).toEqual([
      'new_instance',
      'unauthenticated',
      'forbidden',
      'protocol_error',
      'closing',
    ]);
    expect(results.get('replaced')?.verdict).toBe('ok');
  });

  test('a claim that the author leaves out does not count', async ({ expect }) => {
    const results = await checkWrong(FAULTS['cancel'] ?? {}, { leftOut: ['cancel'] });
    expect([verdictsOf(results, 'fails'), results.get('cancel')?.verdict]).toEqual([[], 'left_out']);
  });
});

describe.concurrent('a wrong client', () => {
  test.each(Object.entries(FAULTS))('fails exactly the claim %s', async (name, fault) => {
    const results = await checkWrong(fault);
    const failed = [...results.values()].filter(({ verdict }) => verdict === 'fails');
    expect(failed.map(({ name: claim, expected, received }) => [claim, expected, received])).toEqual([
      [name, expect.any(String), expect.any(String)],
    ]);
  });

  test('without the optional features fails nothing', async ({ expect }) => {
    const results = await checkWrong({
      up: (it) => {
        if (it.header.type === 'hello')
          return [{ ...with_(it, { places: false }), payload: withActions(it, [{ name: 'conformance.echo' }]) }];
        const isOptional = it.header.type === 'progress' || it.header.type === 'closing';
        const rounded = it.payload?.includes('9007199254740993') ? '{"value":9007199254740992}' : it.payload;
        return isOptional ? [] : [{ ...it, payload: rounded }];
      },
    });
    expect(verdictsOf(results, 'fails')).toEqual([]);
    expect(verdictsOf(results, 'unused')).toEqual([
      ...['exact_numbers', 'arguments_invalid', 'context_gone', 'progress', 'closing'],
    ]);
  });
});
