/**
 * Sends one call and never repeats it. The call's id is created before it is sent. If the answer is lost, this file
 * awaits the command with that id instead of sending it again.
 */
import {
  AwaitCallDocument,
  InvokeDocument,
  type InvokeMutation,
  type InvokeActionInput,
} from '../../generated/console.ts';
import { errorOf, RequestError } from '../api/errors.ts';
import { send } from '../api/request.ts';
import { textAt } from '../api/text-at.ts';

export type CallAnswer = InvokeMutation['invokeAction'];

/** What is known of a call that this drawer has sent. */
export type Sent = {
  readonly commandId: string;
  readonly action: string;
  readonly userId: string;
  readonly clientId: string;
  readonly sentAt: number;
  /**
   * `sending`: there is no answer yet. `lost`: the answer was lost, and the command is awaited. `answered`: the relay
   * answered. `failed`: it is unknown what became of the call.
   */
  readonly state: 'sending' | 'lost' | 'answered' | 'failed';
  readonly answer: CallAnswer | null;
  /** The result as JSON text; null if there is none. */
  readonly result: string | null;
  readonly error: RequestError | null;
};

/** Returns an id in the form that the relay uses: a UUID of version 7, which begins with the time. */
export function createCommandId(nowMs: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(nowMs / 2 ** 32));
  view.setUint32(2, nowMs % 2 ** 32);
  view.setUint8(6, 0x70 | (view.getUint8(6) & 0x0f));
  view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f));
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export type CallInput = InvokeActionInput & { readonly commandId: string };

/** How long one request waits for a command whose answer was lost, in milliseconds. */
const AWAIT_MS = 30_000;
/** The number of requests that await a command whose answer was lost. */
const AWAITS = 5;
/** The pause before the second of these requests, in milliseconds. Each following pause is longer by the same time. */
const PAUSE_MS = 1_500;

/** Sends the call and reports what is known of it to `onChange`. `paramsText` is sent unchanged. Never rejects. */
export async function sendCall(input: CallInput, paramsText: string, onChange: (sent: Sent) => void): Promise<void> {
  const { commandId, action, userId, clientId } = input;
  let sent: Sent = {
    ...{ commandId, action, userId, clientId, sentAt: Date.now() },
    ...{ state: 'sending', answer: null, result: null, error: null },
  };
  const show = (change: Partial<Sent>): void => onChange((sent = { ...sent, ...change }));
  show({});
  try {
    const { data, text } = await send(InvokeDocument, { input: { ...input, params: JSON.parse(paramsText) } });
    show({ state: 'answered', answer: data.invokeAction, result: resultOf(text, 'invokeAction') });
  } catch (cause) {
    const error = errorOf(cause);
    if (error.code !== 'unreachable' && error.code !== 'bad_answer') return show({ state: 'failed', error });
    show({ state: 'lost', error });
    await awaitLost({ commandId, userId, clientId }, show);
  }
}

type Ids = { readonly commandId: string; readonly userId: string; readonly clientId: string };

async function awaitLost(ids: Ids, show: (change: Partial<Sent>) => void): Promise<void> {
  for (let tries = 1; tries <= AWAITS; tries++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    try {
      const { data, text } = await send(AwaitCallDocument, { ...ids, withinMs: AWAIT_MS });
      const answer = data.awaitCommand;
      return show({ state: 'answered', answer, result: resultOf(text, 'awaitCommand'), error: null });
    } catch (cause) {
      const error = errorOf(cause);
      show({ error });
      if (error.code !== 'unreachable' && error.code !== 'bad_answer') return show({ state: 'failed' });
    }
  }
  show({ state: 'failed' });
}

function resultOf(text: string, field: string): string | null {
  const found = textAt(text, ['data', field, 'result']);
  return found === 'null' ? null : found;
}
