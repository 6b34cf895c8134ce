/** Defines the kinds of inputs that the fuzzer sends, and how each input is made, sent and judged. */
import { bodyOf, documentInput } from './documents.ts';
import { frameSession, SESSION_FRAMES } from './frames.ts';
import { problemOf } from './judge.ts';
import { Draw } from './random.ts';
import { requestInput } from './requests.ts';
import { sendDocument } from './send-document.ts';
import { sendFrames } from './send-frames.ts';
import { sendRequest } from './send-request.ts';
import type { Target } from './target.ts';

export const KIND_NAMES = ['frames', 'requests', 'documents'] as const;
export type KindName = (typeof KIND_NAMES)[number];

/** One input, which can be sent any number of times. */
export type Input = {
  readonly index: number;
  /** The number of frames, requests or documents that the input contains. */
  readonly count: number;
  /**
   * Whether the input changes stored state. While such an input is sent, answers to other inputs cannot be compared.
   */
  readonly changes: boolean;
  /** Sends the input and resolves with the faults of the answers. `mark` makes the input new to the relay. */
  send(target: Target, mark: string): Promise<readonly string[]>;
  /** Returns the input as text for the report of a finding. */
  show(): string;
};

export type Kind = {
  readonly name: KindName;
  /** The clock of the relay: `still`, so that two answers to one request are equal, or `fast`, so that waits end. */
  readonly clock: 'still' | 'fast';
  readonly countOfOne: number;
  /** Returns the input of this index, always the same for the same seed. */
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

/** How often each document is sent. From the third request on, a document takes the relay's fast path. */
const TIMES = 3;
/** How often two answers are compared before they count as different. A link may answer a ping between two requests. */
const LOOKS = 3;
/**
 * Matches documents that read the audit. Their answers change while others read payloads, since each such read adds a
 * row to the audit.
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
      // The limits on bad tokens count by address. Each document gets another address, so that no earlier input causes
      // a refusal.
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
