/** Defines the kinds of inputs that the fuzzer sends, and how each input is generated, sent and judged. */
import { WebSocket } from 'ws';
import { CLOSE, isCode } from '../../src/protocol/codes.ts';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { bodyOf, documentInput } from './documents.ts';
import { frameSession, type FrameSession, SESSION_FRAMES } from './frames.ts';
import { problemOf } from './judge.ts';
import { Draw } from '../lib/random.ts';
import { requestInput } from './requests.ts';
import { sendDocument, sendRequest } from './send-request.ts';
import type { Target } from './target.ts';

export const KIND_NAMES = ['frames', 'requests', 'documents'] as const;
export type KindName = (typeof KIND_NAMES)[number];

/** One input, which can be sent any number of times. */
export type Input = {
  readonly index: number;
  /** The number of frames, requests or documents that the input contains. */
  readonly count: number;
  /** Whether the input changes stored state. Answers to other inputs cannot be compared while such an input is sent. */
  readonly changes: boolean;
  /** Sends the input, and resolves with the faults of the answers. `mark`: makes the input new to the relay. */
  send(target: Target, mark: string): Promise<readonly string[]>;
  /** Returns the input as text for the report of a finding. */
  show(): string;
};

export type Kind = {
  readonly name: KindName;
  /**
   * The relay's clock. `still`: it is stopped, so that two answers to one request are equal. `fast`: it runs fast, so
   * that waits end.
   */
  readonly clock: 'still' | 'fast';
  readonly countOfOne: number;
  /** Returns the input with this index. The same seed always gives the same input. */
  make(index: number, target: Target): Input;
};

export function kindOf(name: KindName, seed: number): Kind {
  if (name === 'frames') return frames(seed);
  return name === 'requests' ? requests(seed) : documents(seed);
}

function frames(seed: number): Kind {
  return {
    name: 'frames',
    clock: 'fast',
    countOfOne: SESSION_FRAMES,
    make(index, target) {
      const session = frameSession(seed, index, target.token);
      return {
        index,
        count: SESSION_FRAMES,
        changes: false,
        send: ({ relay }) => sendFrames(relay.linkUrl, session),
        show: () =>
          [session.hello, ...session.frames]
            .map((frame, i) => `${i}: ${short(JSON.stringify(String(frame)))}`)
            .join('\n'),
      };
    },
  };
}

function requests(seed: number): Kind {
  return {
    name: 'requests',
    clock: 'fast',
    countOfOne: 1,
    make(index, target) {
      const input = requestInput(seed, index, target.token);
      return {
        index,
        count: 1,
        changes: false,
        async send({ relay }) {
          const { answers, hung } = await sendRequest(relay.url, input);
          const problems = answers.map(problemOf).filter((problem) => problem !== null);
          return hung ? [...problems, 'no answer, and the connection was not closed'] : problems;
        },
        show: () => short(JSON.stringify(input.bytes.toString('utf8'))),
      };
    },
  };
}

/** How often each document is sent. From the third time on, the relay answers it on the fast path. */
const TIMES = 3;
/**
 * How often two answers are compared before they count as different. Between two requests, a link may answer a ping and
 * so change an answer.
 */
const LOOKS = 3;
/**
 * Matches documents that read the audit. Their answers change while other requests read payloads, because each such
 * read adds an audit row.
 */
const AUDIT = /\baudit(?:Events|Chain)\b/;

function documents(seed: number): Kind {
  return {
    name: 'documents',
    clock: 'still',
    countOfOne: 1,
    make(index, target) {
      const input = documentInput(seed, index);
      const { who, mutates } = input;
      const draw = new Draw(seed, 'address', index);
      // Each document has a different address, so that the limits on invalid tokens per address never apply because of
      // an earlier input.
      const address = `10.${draw.int(0, 255)}.${draw.int(0, 255)}.${draw.int(0, 255)}`;
      return {
        index,
        count: 1,
        changes: mutates,
        async send(at, mark) {
          const body = bodyOf(input, mark);
          const ask = (url: string) => sendDocument(url, body, { agent: at.agent, token: target.token(who), address });
          const fast = await ask(at.relay.url);
          const problem = problemOf(fast);
          if (problem !== null || mutates || AUDIT.test(input.query)) return problem === null ? [] : [problem];
          for (let time = 1; time < TIMES; time++) await ask(at.relay.url);
          return (await areEqual(ask, at)) ? [] : ['the answer differs with the fast path off'];
        },
        show: () => `as ${who}: ${short(bodyOf(input))}`,
      };
    },
  };
}

async function areEqual(
  ask: (url: string) => Promise<{ readonly status: number; readonly text: string }>,
  { relay }: Target,
): Promise<boolean> {
  for (let look = 0; look < LOOKS; look++) {
    const [fast, slow] = await Promise.all([ask(relay.url), ask(relay.secondUrl)]);
    if (fast.status === slow.status && fast.text === slow.text) return true;
  }
  return false;
}

/** The maximum length of an input in a report, in characters. */
const SHOWN = 600;

function short(text: string): string {
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length} characters)`;
}

// Sends frames over one link of the relay under test, from its opening to its end.

/** The timeout for a link, from its opening to its end, in milliseconds. */
const SESSION_MS = 20_000;
/** The close code with which the relay reports a failure of its own, which no input may cause. */
const INTERNAL = 4490;
/** The close codes that no session may cause: for too many unreadable frames, and for messages that are too large. */
const FOR_FRAMES: readonly number[] = [CLOSE.protocol_error, CLOSE.frame_too_large];

/**
 * Sends the frames of a session over a new link. Resolves when the link has closed, with the faults that were found.
 */
function sendFrames(linkUrl: string, { hello, frames, end }: FrameSession): Promise<readonly string[]> {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  const problems: string[] = [];
  const socket = new WebSocket(linkUrl, SUBPROTOCOL, { perMessageDeflate: false });
  const late = setTimeout(() => {
    problems.push(`the link was not closed within ${SESSION_MS} ms`);
    socket.terminate();
  }, SESSION_MS);
  let begun = false;
  let welcomed = false;
  const begin = (): void => {
    if (begun) return;
    begun = true;
    for (const frame of frames) socket.send(frame);
    if (end === 'close') socket.close(1000);
    else socket.send('{"type":"pong"}', () => socket.terminate());
  };
  socket.on('open', () => socket.send(hello));
  socket.on('message', (data) => {
    const frame = parseDown(String(data));
    if (!frame) problems.push(`the relay sent what is no frame: ${String(data).slice(0, 300)}`);
    else if (frame.type === 'refused' && (!isCode(frame.code) || frame.code === 'internal'))
      problems.push(`refused with the code ${frame.code}: ${frame.message}`);
    else if (frame.type === 'welcome') welcomed = true;
    else if (frame.type === 'bye' && (frame.code === INTERNAL || (welcomed && FOR_FRAMES.includes(frame.code))))
      problems.push(`closed with ${frame.code}: ${frame.reason}`);
    // The frames are sent even if the hello was refused, as by a careless client.
    begin();
  });
  socket.on('error', (error) => void (begun || problems.push(`the link broke before its welcome: ${error.message}`)));
  socket.on('close', () => {
    clearTimeout(late);
    resolve(problems);
  });
  return promise;
}
