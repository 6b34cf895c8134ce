/** Shows the state of one call, in a sentence that says only what is proven. */
import type { ComponentChildren } from 'preact';
import { duration, plural } from '../ui/format.ts';
import { Facts } from '../ui/page.tsx';
import { CommandMark, OutcomeMark, StageMark } from '../ui/status.tsx';
import { Time, Until } from '../ui/time.tsx';
import { EXECUTION, reasonText } from '../ui/words.ts';
import type { CallDetails } from './types.ts';

export function CallHead({ call }: { readonly call: CallDetails }) {
  const { delivery, outcome } = call;
  return (
    <div class="case-head">
      <div>
        <p>
          {delivery ? (
            <CommandMark stage={delivery.stage} outcome={outcome} />
          ) : (
            outcome && <OutcomeMark outcome={outcome} />
          )}
        </p>
        <p>{sentenceOf(call)}</p>
        {call.error && (
          <p class="soft">
            {call.error.message} <code>{call.error.code}</code>
          </p>
        )}
      </div>
      {delivery && (
        <Facts
          rows={[
            ['Last proven', <StageMark stage={delivery.lastProvenStage} />],
            ['Execution', EXECUTION[delivery.execution]],
            delivery.terminalAt === null
              ? ['Ends', <Until at={delivery.deadline} />]
              : [
                  'Ended',
                  <>
                    <Time at={delivery.terminalAt} exact />, after{' '}
                    {duration(Date.parse(delivery.terminalAt) - Date.parse(delivery.admittedAt))}
                  </>,
                ],
            delivery.lateResults > 0
              ? ['Since then', `${plural(delivery.lateResults, 'late result')}, kept as evidence`]
              : null,
          ]}
        />
      )}
    </div>
  );
}

function sentenceOf({ outcome, delivery, clientId }: CallDetails): ComponentChildren {
  if (!delivery) return 'Its record is no longer kept. What remains is in the retained messages below.';
  switch (outcome) {
    case 'COMPLETED':
      return `${clientId} reported that it completed.`;
    case 'FAILED':
      return delivery.execution === 'REFUSED_BY_CLIENT'
        ? `${clientId} refused it and did not run it.`
        : `${clientId} reported that it failed.`;
    case 'CANCELLED':
      return delivery.dispatchedAt === null
        ? 'It was cancelled before anything was written to the client.'
        : 'It was cancelled after it was written to the client, which reported that it stopped.';
    case 'EXPIRED':
      return `${delivery.reason ? `${reasonText(delivery.reason)}. ` : ''}Nothing was written to a client, so it did not run.`;
    case 'OUTCOME_UNKNOWN':
      return (
        <>
          The relay began to write this command to {clientId}
          {delivery.dispatchedAt && (
            <>
              {' '}
              at <Time at={delivery.dispatchedAt} exact />
            </>
          )}
          . {delivery.reason ? `${reasonText(delivery.reason)}.` : 'Then it had no answer.'}{' '}
          <strong>It may have run.</strong> Nothing after the last proven stage is known.
        </>
      );
    default:
      return RUNNING[delivery.stage](clientId);
  }
}

const RUNNING = {
  ADMITTED: (client: string) => `It is on record and waits for ${client} to connect. Nothing was written.`,
  QUEUED: (client: string) => `It is queued for the link of ${client}. Nothing was written.`,
  DISPATCHED: (client: string) =>
    `The relay began to write it to ${client}. That proves neither receipt nor execution.`,
  ACKNOWLEDGED: (client: string) => `${client} confirmed that it received it. That does not prove that it ran.`,
  TERMINAL: () => 'It ended.',
};
