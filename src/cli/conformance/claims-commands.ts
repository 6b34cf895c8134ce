/**
 * The requirements of PROTOCOL.md for clients that run commands, each as a claim with a check. The claims use one link
 * as long as the client keeps it.
 */
import { isDeepStrictEqual } from 'node:util';
import { IN_FLIGHT, JSON_DEPTH, MAX_FRAME_BYTES } from '../../core/limits.ts';
import { NAME } from '../../protocol/fields.ts';
import { FRAMES_PER_MESSAGE, joinFrame } from '../../protocol/frame-codec.ts';
import type { UpFrame } from '../../protocol/frames.ts';
import { isRecord } from '../../protocol/json.ts';
import { isEnd, ClaimFailure, NoVerdict, shown, type CommandEnd, type SentCommand, type Trial } from './trial.ts';

/**
 * A requirement of PROTOCOL.md with its check. `check`: if the client meets the requirement, may return a remark;
 * otherwise throws ClaimFailure, or NoVerdict if it cannot tell.
 */
export type ConformanceClaim = {
  readonly name: string;
  /** The section of PROTOCOL.md with the requirement. */
  readonly section: number;
  /** What the client must do, in one clause. */
  readonly says: string;
  /** True if the requirement belongs to a feature that a client may lack. */
  readonly optional?: true;
  readonly check: (trial: Trial) => Promise<string | void>;
};

/** The `wait_ms` of an echo command that must still run while the check does something else. */
const RUNS_MS = 60_000;
/** How long to wait for an `ack`, in milliseconds. A client may send none. */
const START_MS = 500;
/** The `wait_ms` of an echo command that ends after a while. */
const SHORT_MS = 300;
/** The time until the deadline of a command, in the claim about deadlines, in milliseconds. */
const DEADLINE_MS = 1_000;
const UNKNOWN_ACTION = 'conformance.absent';

const isAck = (frame: UpFrame): frame is Extract<UpFrame, { type: 'ack' | 'progress' }> =>
  frame.type === 'ack' || frame.type === 'progress';
const isPong = (frame: UpFrame): boolean => frame.type === 'pong';

export const COMMAND_CLAIMS: readonly ConformanceClaim[] = [
  {
    name: 'result',
    section: 5,
    says: 'a command is run, and its result is reported once',
    async check(trial) {
      const sent = trial.command({ value: { text: 'é 🙂', list: [1, null, true] } });
      expectEcho(await trial.endOf(sent, 'a `result`'), { value: { text: 'é 🙂', list: [1, null, true] } });
      await trial.settled();
      expectOneEnd(trial, sent);
    },
  },
  {
    name: 'no_params',
    section: 5,
    says: 'a command without a payload has the params `{}`',
    check: async (trial) => expectEcho(await trial.endOf(trial.command(undefined), 'a `result` with {}'), {}),
  },
  {
    name: 'payload_text',
    section: 2,
    says: 'only the first line feed of a frame separates; the payload may hold others',
    async check(trial) {
      const params = { value: ['a\nb', 'c\u2028d', '\u0007"\\', { deep: [[{}]] }] };
      const sent = trial.command(JSON.stringify(params, null, 2));
      expectEcho(await trial.endOf(sent, 'a `result` with the params'), params);
    },
  },
  {
    name: 'exact_numbers',
    section: 2,
    says: 'numbers keep their digits, as the relay keeps them',
    optional: true,
    async check(trial) {
      const end = await trial.endOf(trial.command('{"value":9007199254740993}'), 'a `result`');
      if (end.payload?.includes('9007199254740993') !== true)
        throw new NoVerdict('unused', `the number 9007199254740993 came back as ${shown(end)}`);
    },
  },
  {
    name: 'ack',
    section: 5,
    says: '`ack` is sent before the handler runs',
    async check(trial) {
      const sent = trial.command({ wait_ms: SHORT_MS });
      const end = await trial.endOf(sent, 'a `result`', SHORT_MS);
      const [first] = trial.framesOf(sent);
      if (first && isEnd(first))
        throw new ClaimFailure('`ack` before the end of a command that runs for a while', shown(end));
    },
  },
  {
    name: 'handler_failed',
    section: 5,
    says: 'a handler that fails is reported as `error`, without a stack trace',
    async check(trial) {
      const expected = '`error` with the code `handler_failed`';
      const end = await trial.endOf(trial.command({ fail: 'as it was asked to' }), expected);
      if (end.type !== 'error' || end.code !== 'handler_failed') throw new ClaimFailure(expected, shown(end));
      const { message = '' } = end;
      if (/\n\s+(at |File ")|Traceback|goroutine \d/.test(message))
        throw new ClaimFailure('a `message` without a stack trace', JSON.stringify(message));
    },
  },
  {
    name: 'unknown_action',
    section: 5,
    says: 'a command of an unknown action is refused without `ack`',
    check: (trial) => expectRefusal(trial, trial.command({}, { action: UNKNOWN_ACTION }), 'unknown_action'),
  },
  {
    name: 'arguments_invalid',
    section: 5,
    says: 'params that do not match the schema are refused without `ack`',
    optional: true,
    async check(trial) {
      const { action } = trial.options;
      if (advertised(trial).find(({ name }) => name === action)?.['checks_arguments'] !== true)
        throw new NoVerdict('unused', `${action} is advertised without \`checks_arguments\``);
      await expectRefusal(trial, trial.command({ wait_ms: 'soon' }), 'arguments_invalid');
    },
  },
  {
    name: 'context_gone',
    section: 5,
    says: 'a command that names a context which is not there is refused without `ack`',
    optional: true,
    async check(trial) {
      if (trial.link.hello.places !== true) throw new NoVerdict('unused', '`hello` is without `places`');
      await expectRefusal(trial, trial.command({}, { contextId: 'conformance-absent' }), 'context_gone');
    },
  },
  {
    name: 'progress',
    section: 5,
    says: 'progress is reported while the handler runs, and never after the end',
    optional: true,
    async check(trial) {
      const sent = trial.command({ progress: { done: 1 }, wait_ms: SHORT_MS });
      await trial.endOf(sent, 'a `result`', SHORT_MS);
      await trial.settled();
      const frames = trial.framesOf(sent);
      const reported = frames.filter(({ type }) => type === 'progress');
      if (reported.length === 0) throw new NoVerdict('unused', 'no progress came');
      if (frames.findIndex(isEnd) !== frames.length - 1)
        throw new ClaimFailure('nothing after the end', frames.map(shown).join(', '));
      const [{ payload = null } = {}] = reported;
      if (!isDeepStrictEqual(parsed(payload), { done: 1 }))
        throw new ClaimFailure('`progress` with {"done":1}', reported.map(shown).join(', '));
    },
  },
  {
    name: 'cancel',
    section: 5,
    says: '`cancel` stops a handler, whose end is `cancelled`',
    async check(trial) {
      const sent = await running(trial);
      sent.link.send({ type: 'cancel', command_id: sent.id, reason: 'a test' });
      const end = await trial.endOf(sent, '`cancelled` after `cancel`');
      if (end.type !== 'cancelled') throw new ClaimFailure('`cancelled` after `cancel`', shown(end));
    },
  },
  {
    name: 'cancel_ignored',
    section: 5,
    says: '`cancel` for a command that is unknown or has ended is ignored',
    async check(trial) {
      const ended = trial.command({});
      await trial.endOf(ended, 'a `result`');
      const unknown = { ...ended, id: `${ended.id}-unknown` };
      for (const { id } of [unknown, ended]) ended.link.send({ type: 'cancel', command_id: id });
      await trial.settled();
      const [frame] = trial.framesOf(unknown);
      if (frame) throw new ClaimFailure('nothing after `cancel` for an unknown command', shown(frame));
      expectOneEnd(trial, ended);
    },
  },
  {
    name: 'pong',
    section: 4,
    says: '`ping` is answered with `pong` at once, also while a handler runs',
    async check(trial) {
      const sent = await running(trial);
      const { link } = sent;
      const before = link.frames.length;
      link.send({ type: 'ping' });
      const pong = await trial.peer.until(() => link.frames.slice(before).find(isPong), trial.options.withinMs);
      link.send({ type: 'cancel', command_id: sent.id });
      if (!pong) throw new ClaimFailure('`pong` after `ping`', `none within ${trial.options.withinMs} ms`);
    },
  },
  {
    name: 'repeat_running',
    section: 5,
    says: 'a command that is repeated while it runs does not run again',
    async check(trial) {
      const first = await running(trial, { value: 1, wait_ms: 2 * START_MS });
      const again = trial.command({ value: 2, wait_ms: SHORT_MS }, { id: first.id });
      await trial.endOf(first, 'a `result`', 2 * START_MS);
      // If the client wrongly runs the command again, its second end comes before the end of this echo.
      await trial.endOf(trial.command({ wait_ms: SHORT_MS }), 'a `result`', SHORT_MS);
      const ends = trial.framesOf(first).filter(isEnd);
      if (ends.length !== 1 || !sameValue(ends[0], 1))
        throw new ClaimFailure('one `result`, of the first delivery', trial.framesOf(again).map(shown).join(', '));
    },
  },
  {
    name: 'repeat_ended',
    section: 5,
    says: 'a command that is repeated after its end is answered from memory and does not run again',
    async check(trial) {
      const { link } = trial;
      const first = trial.command({ value: 1 });
      let ends = 0;
      link.acknowledges = (id) => id !== first.id || ++ends > 1;
      await trial.endOf(first, 'a `result`');
      const expected = 'the same `result` again, or `error` with the code `result_unavailable`';
      // The command is sent a second time before the `result_ack` of its end, and a third time after it.
      for (let times = 0; times < 2; times++) {
        const again = trial.command({ value: 2 }, { id: first.id });
        const end = await trial.endOf(again, expected);
        const unavailable = end.type === 'error' && end.code === 'result_unavailable';
        if (!sameValue(end, 1) && !unavailable) throw new ClaimFailure(expected, shown(end));
      }
    },
  },
  {
    name: 'remaining_ms',
    section: 5,
    says: 'a handler is stopped when `remaining_ms` is over, with the code `client_timeout`',
    async check(trial) {
      const { clock } = trial.options;
      const deadline = clock.now() + DEADLINE_MS;
      const sent = trial.command({ wait_ms: RUNS_MS }, { remainingMs: DEADLINE_MS });
      const expected = '`error` with the code `client_timeout` when the time of the command is over';
      const end = await trial.endOf(sent, expected, DEADLINE_MS);
      const late = clock.now() - deadline;
      if (end.type !== 'error' || end.code !== 'client_timeout') throw new ClaimFailure(expected, shown(end));
      if (late >= 0)
        return `the end came ${late} ms after the deadline, when a relay has already recorded \`outcome_unknown\`: stop earlier`;
    },
  },
  {
    name: 'site_params',
    section: 5,
    says: 'params that begin with `__cooperative_site_` are removed before the handler sees them',
    async check(trial) {
      const site = { __cooperative_site_session_id: 's1', __cooperative_site_id: 'board' };
      expectEcho(await trial.endOf(trial.command({ value: 1, ...site }), 'a `result`'), { value: 1 });
    },
  },
  {
    name: 'unknown_ignored',
    section: 2,
    says: 'unknown header members and frames of unknown types are ignored, and a member that is null counts as absent',
    async check(trial) {
      const { link } = trial;
      link.sendText('{"type":"conformance_news","of":"a newer relay"}\n{"more":[1]}');
      const sent = { id: 'conformance-newer', link, from: link.frames.length };
      const more = { trace_id: null, of_a_newer_relay: { n: 1 } };
      const header = {
        type: 'command',
        command_id: sent.id,
        action: trial.options.action,
        remaining_ms: RUNS_MS,
        ...more,
      };
      link.sendText(joinFrame(header, '{"value":1}'));
      expectEcho(await trial.endOf(sent, 'a `result`'), { value: 1 });
    },
  },
  {
    name: 'long_frame',
    section: 2,
    says: 'a frame from the relay may be longer than `max_frame_bytes` by its header',
    async check(trial) {
      // The action is unknown, so that the client's answer is short.
      const params = `{"value":"${'x'.repeat(MAX_FRAME_BYTES)}"}`;
      await trial.endOf(trial.command(params, { action: UNKNOWN_ACTION }), 'an `error`');
    },
  },
  {
    name: 'deep_params',
    section: 2,
    says: 'params and results may be nested as deep as `max_depth` says',
    async check(trial) {
      const params = `${'{"value":'.repeat(JSON_DEPTH)}1${'}'.repeat(JSON_DEPTH)}`;
      const value: object = JSON.parse(params);
      expectEcho(await trial.endOf(trial.command(params), 'a `result` with the params'), value);
    },
  },
  {
    name: 'large_result',
    section: 5,
    says: 'a result that does not fit into `max_frame_bytes` is reported as `error` with `result_unavailable`',
    async check(trial) {
      // The params fit into a frame, but a result with the same value does not.
      const params = `{"value":"${'x'.repeat(MAX_FRAME_BYTES - 20)}"}`;
      const expected = '`error` with the code `result_unavailable`';
      const end = await trial.endOf(trial.command(params), expected);
      if (end.type !== 'error' || end.code !== 'result_unavailable') throw new ClaimFailure(expected, shown(end));
    },
  },
  {
    name: 'frames_per_message',
    section: 2,
    says: 'a message holds at most `frames_per_message` frames, and `in_flight` commands may run at once',
    async check(trial) {
      const { link } = trial;
      link.joined = 1;
      await expectMany(trial);
      if (link.joined > FRAMES_PER_MESSAGE)
        throw new ClaimFailure(`at most ${FRAMES_PER_MESSAGE} frames in a message`, `one with ${link.joined}`);
      if (link.joined > 1) return `up to ${link.joined} came in one message`;
    },
  },
];

/** Sends as many commands at once as may be in flight, and checks that each gets its own result. */
export async function expectMany(trial: Trial): Promise<void> {
  const all = Array.from({ length: IN_FLIGHT }, (_, value) => ({ value, sent: trial.command({ value }) }));
  for (const { value, sent } of all)
    expectEcho(await trial.endOf(sent, `a \`result\` of each of ${IN_FLIGHT} commands`), { value });
}

/** Returns the actions that the client advertised most recently: in its hello, or in a later `actions` frame. */
export function advertised({ link }: Trial): readonly Readonly<Record<string, unknown>>[] {
  const last = link.frames.findLast(({ type }) => type === 'actions') ?? link.hello;
  const payload = parsed(last.payload);
  const actions = isRecord(payload) ? payload['actions'] : [];
  return Array.isArray(actions) ? actions.filter(isRecord) : [];
}

/** Returns what is wrong with the advertised actions; null if nothing is wrong. */
export function faultInActions(trial: Trial): string | null {
  const names = advertised(trial).map(({ name }) => name);
  const wrong = names.find((name) => typeof name !== 'string' || !NAME.test(name));
  if (wrong !== undefined) return `an action with the name ${JSON.stringify(wrong)}`;
  if (new Set(names).size < names.length) return `a name twice, among ${names.join(', ')}`;
  if (names.includes(trial.options.action)) return null;
  return names.length === 0 ? 'no action' : names.join(', ');
}

/**
 * Sends an echo command. Resolves after its `ack`, or after START_MS if there is none. Throws ClaimFailure if the
 * command has already ended.
 */
async function running(trial: Trial, params: object = { wait_ms: RUNS_MS }): Promise<SentCommand> {
  const sent = trial.command(params);
  const [first] = (await trial.peer.until(() => some(trial.framesOf(sent)), START_MS)) ?? [];
  if (first && isEnd(first)) throw new ClaimFailure('no end before the `wait_ms` of the command', shown(first));
  return sent;
}

function some<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

async function expectRefusal(trial: Trial, sent: SentCommand, code: string): Promise<void> {
  const expected = `\`error\` with the code \`${code}\`, and no \`ack\``;
  const end = await trial.endOf(sent, expected);
  const frames = trial.framesOf(sent);
  if (end.type !== 'error' || end.code !== code || frames.some(isAck))
    throw new ClaimFailure(expected, frames.map(shown).join(', then '));
}

function expectEcho(end: CommandEnd, params: unknown): void {
  if (end.type !== 'result' || !isDeepStrictEqual(parsed(end.payload), params))
    throw new ClaimFailure(`a \`result\` with ${JSON.stringify(params)}`, shown(end));
}

function expectOneEnd(trial: Trial, sent: SentCommand): void {
  const ends = trial.framesOf(sent).filter(isEnd);
  if (ends.length > 1) throw new ClaimFailure('one end of a command', ends.map(shown).join(', then '));
}

/** Whether an end is the result of an echo command with this value. */
export function sameValue(end: CommandEnd | undefined, value: unknown): boolean {
  const result = end?.type === 'result' ? parsed(end.payload) : null;
  return isRecord(result) && result['value'] === value;
}

/** Returns the value of a payload. The peer has already checked that it is JSON. */
function parsed(payload: string | null): unknown {
  return payload === null ? null : JSON.parse(payload);
}
