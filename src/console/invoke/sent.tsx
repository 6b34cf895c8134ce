/**
 * Sends calls, and shows the calls that the drawer has sent: the latest one with its proven stages, and one line for
 * each other call.
 */
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { textAt } from '../api/exact-text.ts';
import { now } from '../api/visible.ts';
import { RequestError, accepted, errorOf, exactJson, request, send } from '../api/request.ts';
import { callHref } from '../base.ts';
import { ActError } from '../ui/notices.tsx';
import { Section } from '../ui/page.tsx';
import { Payload } from '../ui/payload.tsx';
import { Shape } from '../ui/shapes.tsx';
import {
  Button,
  OutcomeMark,
  ShortId,
  StageMark,
  StateMark,
  outcomeShape,
  outcomeWord,
  stageWord,
} from '../ui/values.tsx';
import { executionText } from '../pages/states.ts';
import { bytes, duration } from '../ui/amounts.ts';
import { exactClock } from '../ui/zones.ts';

/** The size in bytes above which a result is shown only at the user's request. */
const FOLDED_BYTES = 64 * 1024;

type SentCallsProps = {
  readonly sent: readonly Sent[];
  /** Called when the user follows a link to a call. */
  readonly onLeave: () => void;
};

export function SentCalls({ sent, onLeave }: SentCallsProps) {
  const [latest, ...earlier] = sent;
  if (!latest) return null;
  const leave = ({ target }: MouseEvent): void => {
    if (target instanceof Element && target.closest('a')) onLeave();
  };
  return (
    <div onClick={leave}>
      <Section title="Sent from here" about={sent.length === 1 ? '1 call' : `${sent.length} calls`}>
        <LatestCall key={latest.commandId} sent={latest} />
        {earlier.length > 0 && (
          <div class="sent-before">
            <h3>Sent before</h3>
            {earlier.map((one) => (
              <p key={one.commandId}>
                <SentState sent={one} steps={[]} />
              </p>
            ))}
          </div>
        )}
      </Section>
    </div>
  );
}

type Step = { readonly at: string; readonly stage: gql.Stage; readonly outcome: gql.Outcome | null };

function LatestCall({ sent }: { readonly sent: Sent }) {
  const [seen, setSeen] = useState<readonly Step[]>([]);
  const { userId, clientId, commandId, answer } = sent;
  const isRefused = answer?.__typename === 'Refusal';
  useLive(gql.CallUpdatesDocument, {
    variables: { userId, clientId, commandId },
    onData: ({ commandUpdates: { at, stage, outcome, missed } }) => {
      setSeen((was) => (was.some((step) => step.stage === stage) ? was : [...was, { at, stage, outcome }]));
      return missed;
    },
    onStale: () => undefined,
    skip: sent.state === 'failed' || isRefused,
  });
  const isEnded = Boolean(!isRefused && answer?.outcome) || seen.some(({ outcome }) => outcome !== null);
  const isOver = isRefused || isEnded;
  const record = useQuery(gql.CallStagesDocument, { userId, clientId, commandId }, { skip: !isEnded });
  const steps = stepsOf(record.data) ?? seen;
  const [first] = steps;
  return (
    <div aria-live="polite">
      <p class="verdict">
        <SentState sent={sent} steps={steps} />
        {!isOver && <CancelButton sent={sent} />}
      </p>
      <DocumentAnswer sent={sent} />
      <ol class="tl tl-s">
        {steps.map((step) => (
          <li key={step.stage}>
            <div class="tl-time">
              <time dateTime={step.at}>{exactClock(step.at)}</time>
            </div>
            <div class={`tl-node ${step.outcome ? `st-${outcomeShape(step.outcome)}` : ''}`}>
              <Shape name={step.outcome ? outcomeShape(step.outcome) : 'proven'} />
            </div>
            <div class="tl-body">
              {step.outcome ? outcomeWord(step.outcome) : stageWord(step.stage)}{' '}
              {first && step !== first && (
                <span class="quiet">+{duration(Date.parse(step.at) - Date.parse(first.at))}</span>
              )}
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Returns the stages of a call that has ended, from its record; null while there is no record. */
function stepsOf(answer: gql.CallStagesQuery | null): readonly Step[] | null {
  const delivery = answer?.command?.delivery;
  if (!delivery) return null;
  const { admittedAt, queuedAt, dispatchedAt, acknowledgedAt, terminalAt, outcome } = delivery;
  const stages: readonly (readonly [gql.Stage, string | null])[] = [
    ['ADMITTED', admittedAt],
    ['QUEUED', queuedAt],
    ['DISPATCHED', dispatchedAt],
    ['ACKNOWLEDGED', acknowledgedAt],
    ['TERMINAL', terminalAt],
  ];
  return stages.flatMap(([stage, at]) => {
    return at === null ? [] : [{ at, stage, outcome: stage === 'TERMINAL' ? outcome : null }];
  });
}

type CancelState = 'idle' | 'asking' | 'asked' | RequestError;

/** Shows the button that cancels the call. It asks for no reason, because the viewer has just sent the call. */
function CancelButton({ sent: { userId, clientId, commandId } }: { readonly sent: Sent }) {
  const [state, setState] = useState<CancelState>('idle');
  const cancel = async (): Promise<void> => {
    if (state === 'asking') return;
    setState('asking');
    try {
      accepted((await request(gql.CancelCallDocument, { input: { userId, clientId, commandId } })).cancelCommand);
      setState('asked');
    } catch (error) {
      setState(errorOf(error));
    }
  };
  if (state === 'asked') return <span class="soft">The client was asked to stop it.</span>;
  return (
    <>
      <Button look="btn-s" text="Cancel the call" onClick={() => void cancel()} aria-disabled={state === 'asking'} />
      {state instanceof RequestError && <span class="over">It was not cancelled: {state.message}</span>}
    </>
  );
}

const LOST = 'No answer came, so it is not known whether the call arrived. It is looked for';

type SentStateProps = { readonly sent: Sent; readonly steps: readonly Step[] };

function SentState({ sent, steps }: SentStateProps) {
  const { answer, state } = sent;
  if (answer?.__typename === 'Refusal') return <StateMark shape="failed">Refused</StateMark>;
  const link = <ShortId id={sent.commandId} href={callHref(sent)} />;
  const outcome = answer?.outcome ?? steps.find((step) => step.outcome !== null)?.outcome ?? null;
  if (outcome)
    return (
      <>
        <OutcomeMark outcome={outcome} /> <Took sent={sent} steps={steps} /> {link}
      </>
    );
  if (answer)
    return (
      <>
        <StageMark stage={steps.at(-1)?.stage ?? answer.stage} /> {link}
      </>
    );
  const text =
    state === 'sending'
      ? `Sent ${duration(Math.max(0, now.value - sent.sentAt))} ago`
      : state === 'lost'
        ? LOST
        : 'No answer';
  return (
    <StateMark shape={state === 'sending' ? 'note' : 'open'}>
      {text} {link}
    </StateMark>
  );
}

/**
 * Shows how long the call took, as the relay recorded it. Until that is known, shows the time that this page measured.
 */
function Took({ sent, steps }: SentStateProps) {
  const from = steps.find(({ stage }) => stage === 'ADMITTED')?.at;
  const to = steps.find(({ outcome }) => outcome !== null)?.at;
  const recorded = from !== undefined && to !== undefined ? Date.parse(to) - Date.parse(from) : null;
  const measured = sent.answeredAt === null ? null : sent.answeredAt - sent.sentAt;
  const ms = recorded ?? measured;
  if (ms === null) return null;
  return (
    <span
      class="soft"
      title={
        recorded === null ? 'From sending it to the answer, as this page measured' : 'From its admission to its end'
      }
    >
      in {duration(ms)}
    </span>
  );
}

function DocumentAnswer({ sent }: { readonly sent: Sent }) {
  const { answer, error, result } = sent;
  if (error && sent.state === 'failed') {
    const title =
      error.code === 'unreachable' || error.code === 'bad_answer'
        ? 'The relay did not answer. It is not known whether the call arrived, so it may have run.'
        : 'The relay did not take the call.';
    return <ActError title={title} error={error} />;
  }
  if (!answer) return null;
  if (answer.__typename === 'Refusal') {
    const { by, code, message } = answer;
    return <ActError title={`Refused by ${by.toLowerCase()}.`} error={{ code, message }} />;
  }
  return (
    <>
      {answer.outcome === 'OUTCOME_UNKNOWN' && (
        <p class="soft">
          <strong>It may have run.</strong> {executionText(answer.execution, true)}.
        </p>
      )}
      {answer.error && (
        <p class="soft">
          {answer.error.message} <code>{answer.error.code}</code>
        </p>
      )}
      {result !== null && <Result text={result} />}
    </>
  );
}

function Result({ text }: { readonly text: string }) {
  const size = new Blob([text]).size;
  return (
    <details class="as-table" open={size <= FOLDED_BYTES}>
      <summary>Result, {bytes(size)}</summary>
      <Payload text={text} what="result" />
    </details>
  );
}

// Sends a call once. The console chooses the command's id, so if the answer is lost, it can await the command by its
// id.

type CallAnswer = gql.InvokeMutation['invokeAction'];

/** What this page knows about a call that it has sent. */
export type Sent = {
  readonly commandId: string;
  readonly action: string;
  readonly userId: string;
  readonly clientId: string;
  readonly sentAt: number;
  /** The time at which the answer arrived, in epoch milliseconds; null before that. */
  readonly answeredAt: number | null;
  /**
   * `sending`: there is no answer yet. `lost`: the answer was lost, and the command is awaited by its id. `answered`:
   * the relay has answered. `failed`: there was no answer or a refusal, which `error` describes.
   */
  readonly state: 'sending' | 'lost' | 'answered' | 'failed';
  readonly answer: CallAnswer | null;
  /** The result as JSON text; null if there is none. */
  readonly result: string | null;
  readonly error: RequestError | null;
};

/** Returns a new id in the relay's form: a version 7 UUID, which begins with the time. */
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

export type CallInput = gql.InvokeActionInput & { readonly commandId: string };

/** How long one request waits for a command whose answer was lost, in milliseconds. */
const AWAIT_MS = 30_000;
/** The maximum number of such requests. */
const AWAITS = 5;
/** The delay before the first of these requests, in milliseconds. Each further delay is longer by this time. */
const PAUSE_MS = 1_500;

/**
 * Sends a call, and reports each change of what is known about it. `paramsText` is JSON, which is sent unchanged. Never
 * rejects.
 */
export async function sendCall(input: CallInput, paramsText: string, onChange: (sent: Sent) => void): Promise<void> {
  const { commandId, action, userId, clientId } = input;
  let sent: Sent = {
    commandId,
    action,
    userId,
    clientId,
    sentAt: Date.now(),
    answeredAt: null,
    state: 'sending',
    answer: null,
    result: null,
    error: null,
  };
  const show = (change: Partial<Sent>): void => {
    const answeredAt = change.state === 'answered' ? Date.now() : sent.answeredAt;
    onChange((sent = { ...sent, answeredAt, ...change }));
  };
  show({});
  try {
    const { data, text } = await send(gql.InvokeDocument, { input: { ...input, params: exactJson(paramsText) } });
    show({ state: 'answered', answer: data.invokeAction, result: resultOf(text, 'invokeAction') });
  } catch (cause) {
    const error = errorOf(cause);
    if (error.code !== 'unreachable' && error.code !== 'bad_answer') return show({ state: 'failed', error });
    show({ state: 'lost', error });
    await awaitLost({ commandId, userId, clientId }, show);
  }
}

type CommandIds = Pick<Sent, 'commandId' | 'userId' | 'clientId'>;

async function awaitLost(ids: CommandIds, show: (change: Partial<Sent>) => void): Promise<void> {
  for (let tries = 1; tries <= AWAITS; tries++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    try {
      const { data, text } = await send(gql.AwaitCallDocument, { ...ids, withinMs: AWAIT_MS });
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
