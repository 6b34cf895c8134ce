/** Runs the verbs about pauses: setting, ending and listing them. */
import { readMs, readTime } from '../amounts.ts';
import { usageFailure } from '../exit-codes.ts';
import { listing } from '../listing.ts';
import { objectText } from '../output.ts';
import { bodyOf, pathOf } from '../relay.ts';
import { readWord } from '../enum-words.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';

const PAUSE_ID = ['pause_id'];

export const pause: RunVerb = async (run) => {
  const { relay, flags, io, output } = run;
  if (flags['reason'] === undefined) throw usageFailure('--reason: is required: callers that are refused read it');
  const body = {
    ...{ user_id: flags['userId'], client_id: flags['clientId'], caller: flags['caller'] },
    ...{ action: flags['action'], label: flags['label'], reason: flags['reason'], until: untilOf(run) },
    caller_kind: readWord('CommandCallerKind', flags['callerKind'])?.toLowerCase(),
    all: flags['everything'] === undefined ? undefined : true,
    queued: flags['cancelQueued'] === undefined ? undefined : 'cancel',
    running: flags['cancelRunning'] === undefined ? undefined : 'cancel',
  };
  const receipt = await relay.read('/pauses', { method: 'POST', body });
  io.print(objectText(receipt, output, { id: PAUSE_ID }));
};

/** Returns the end of a pause: the time in `--until`, or the present time plus the duration in `--for`. */
function untilOf({ flags, clock }: OperatorRun): string | undefined {
  const { until, for: duration } = flags;
  if (duration === undefined) return readTime(until, '--until', clock);
  if (until !== undefined) throw usageFailure('--for: cannot be given together with --until');
  return new Date(clock.now() + readMs(duration, 0, '--for')).toISOString();
}

export const resume: RunVerb = async ({ relay, args, io, output }) => {
  const answer = await relay.request(`/pauses${pathOf(args[0] ?? '')}`, { method: 'DELETE' });
  io.print(objectText(bodyOf(answer), output, { id: ['pause.pause_id'] }));
};

export const pausesLs = listing(
  '/pauses',
  {
    shown: ['pause_id', 'by.name', 'since', 'until', 'user_id', 'client_id', 'caller_kind', 'action', 'reason'],
    id: PAUSE_ID,
  },
  ({ flags: { userId } }) => ({ user_id: userId }),
);
