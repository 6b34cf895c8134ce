/** Shows the calls that were sent from this drawer, each with the stages that are proven. */
import { useState } from 'preact/hooks';
import { CallUpdatesDocument, type Outcome, type Stage } from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { now } from '../api/visible.ts';
import { bytes, duration, exactClock } from '../ui/format.ts';
import { ShortId } from '../ui/id.tsx';
import { callHref } from '../ui/links.tsx';
import { ActError } from '../ui/notice.tsx';
import { Section } from '../ui/page.tsx';
import { Payload } from '../ui/payload.tsx';
import { Shape } from '../ui/shape.tsx';
import { OutcomeMark, outcomeShape, outcomeWord, StageMark, StateMark, stageWord } from '../ui/status.tsx';
import { EXECUTION } from '../ui/words.ts';
import type { Sent } from './sending.ts';

/** The size in bytes above which a result is shown only when the user asks for it. */
const FOLDED_BYTES = 64 * 1024;

export function SentCalls({ sent }: { readonly sent: readonly Sent[] }) {
  const [latest, ...earlier] = sent;
  if (!latest) return null;
  return (
    <Section title="Sent from here" about={sent.length === 1 ? '1 call' : `${sent.length} calls`}>
      <LatestCall key={latest.commandId} sent={latest} />
      {earlier.map((one) => (
        <p key={one.commandId}>
          <SentState sent={one} />
        </p>
      ))}
    </Section>
  );
}

type Step = { readonly at: string; readonly stage: Stage; readonly outcome: Outcome | null };

function LatestCall({ sent }: { readonly sent: Sent }) {
  const [steps, setSteps] = useState<readonly Step[]>([]);
  const { userId, clientId, commandId } = sent;
  useLive(
    CallUpdatesDocument,
    { userId, clientId, commandId },
    {
      onData: ({ commandUpdates: { at, stage, outcome, missed } }) => {
        setSteps((was) => (was.some((step) => step.stage === stage) ? was : [...was, { at, stage, outcome }]));
        return missed;
      },
      onStale: () => undefined,
      skip: sent.state === 'failed' || isRefused(sent),
    },
  );
  return (
    <div aria-live="polite">
      <p>
        <SentState sent={sent} />
      </p>
      <ol class="tl tl-s">
        {steps.map((step) => (
          <li key={step.stage}>
            <div class="tl-time">
              <time dateTime={step.at}>{exactClock(step.at)}</time>
            </div>
            <div class="tl-node">
              <Shape name={step.outcome ? outcomeShape(step.outcome) : 'proven'} />
            </div>
            <div class="tl-body">{step.outcome ? outcomeWord(step.outcome) : stageWord(step.stage)}</div>
          </li>
        ))}
      </ol>
      <DocumentAnswer sent={sent} />
    </div>
  );
}

function isRefused({ answer }: Sent): boolean {
  return answer?.__typename === 'Refusal';
}

function SentState({ sent }: { readonly sent: Sent }) {
  const { answer, state } = sent;
  const link = <ShortId id={sent.commandId} href={callHref(sent)} />;
  if (answer?.__typename === 'Refusal') return <StateMark shape="failed">Refused</StateMark>;
  if (answer)
    return (
      <>
        {answer.outcome ? <OutcomeMark outcome={answer.outcome} /> : <StageMark stage={answer.stage} />} {link}
      </>
    );
  if (state === 'lost') return <StateMark shape="open">The answer was lost; the command is awaited {link}</StateMark>;
  if (state === 'failed') return <StateMark shape="open">No answer {link}</StateMark>;
  return (
    <StateMark shape="note">
      Sent {duration(Math.max(0, now.value - sent.sentAt))} ago {link}
    </StateMark>
  );
}

function DocumentAnswer({ sent }: { readonly sent: Sent }) {
  const { answer, error, result } = sent;
  if (error && sent.state === 'failed')
    return (
      <ActError title="The relay did not answer the call." code={error.code}>
        {error.message}
      </ActError>
    );
  if (!answer) return null;
  if (answer.__typename === 'Refusal')
    return (
      <ActError title={`Refused by ${answer.by.toLowerCase()}.`} code={answer.code.toLowerCase()}>
        {answer.message}
      </ActError>
    );
  return (
    <>
      {answer.outcome === 'OUTCOME_UNKNOWN' && (
        <p class="soft">
          <strong>It may have run.</strong> {EXECUTION[answer.execution]}.
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
