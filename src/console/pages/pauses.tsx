/** Shows the red button that stops calls, its dialog, and the notices about pauses, which let calls go on. */
import { useEffect, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { RequestError, accepted, errorOf, isAbort, request } from '../api/request.ts';
import { isAdmin } from '../shell/facts.tsx';
import { CloseAct, Dialog, FormDialog, Select, Switch, TextField } from '../ui/dialogs.tsx';
import { ActError, CutNotice, ErrorNotice, Notice } from '../ui/notices.tsx';
import { ActButton } from '../ui/page.tsx';
import { readTime } from '../ui/time-input.ts';
import { Ago } from '../ui/times.tsx';
import { Button } from '../ui/values.tsx';
import { whole } from '../ui/amounts.ts';
import { plural } from '../ui/text-format.ts';
import { clockAt, day, zoneName } from '../ui/zones.ts';

/** The delay after each answer before the list of pauses is read again, in milliseconds. */
const EVERY_MS = 5_000;
/** The number of pauses that are shown at first, and the maximum number that are read. */
const SHOWN = 3;
const READ = 100;

type Pause = gql.PauseRowFragment;

/** One of the choices of what to stop. */
type StopChoice = {
  /** A short text for the choice. */
  readonly text: string;
  /** What is stopped, as the end of a sentence: `all calls to kiosk-1`. */
  readonly what: string;
  readonly cover: gql.PauseCoverInput;
};

type StopProps = {
  /** The choices of what to stop. The first one is chosen at first. */
  readonly stops: readonly [StopChoice, ...StopChoice[]];
  /** Called when calls were stopped. */
  readonly onDone: () => void;
};

/** Shows the red button, which opens the dialog that stops calls. */
export function StopButton({ stops, onDone }: StopProps) {
  const [isOpen, setOpen] = useState(false);
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const close = (): void => {
    setOpen(false);
    setReceipt(null);
  };
  const done = (given: Receipt): void => {
    setReceipt(given);
    onDone();
  };
  return (
    <>
      <ActButton class="btn-stop" onClick={() => setOpen(true)}>
        Stop calls…
      </ActButton>
      {isOpen && receipt === null && <StopDialog stops={stops} onDone={done} onClose={close} />}
      {isOpen && receipt !== null && <Stopped receipt={receipt} onClose={close} />}
    </>
  );
}

type Receipt = Extract<gql.PauseCallsMutation['pauseCalls'], { readonly __typename: 'PauseReceipt' }>;

/** How long calls are stopped, in minutes. 0: until somebody resumes them. */
const DURATIONS = [
  { value: 0, text: 'until somebody resumes' },
  { value: 10, text: 'for 10 minutes' },
  { value: 60, text: 'for an hour' },
  { value: 480, text: 'for 8 hours' },
  { value: 1440, text: 'for a day' },
];
/**
 * The reason that callers read if the person gave none. A reason is optional, so that in a hurry two clicks stop
 * everything.
 */
const NO_REASON = 'Stopped in the console';
/** The choice of a time that the person types. */
const AT_A_TIME = 'at';

type DialogProps = Pick<StopProps, 'stops'> & {
  readonly onDone: (receipt: Receipt) => void;
  readonly onClose: () => void;
};

function StopDialog({ stops, onDone, onClose }: DialogProps) {
  const [chosen, setChosen] = useState(stops[0]);
  const [duration, setDuration] = useState('0');
  const [queued, setQueued] = useState<gql.PauseQueued>('KEEP');
  const [running, setRunning] = useState<gql.PauseRunning>('LEAVE');
  const act = async (values: FormData): Promise<void> => {
    const reason = String(values.get('reason') ?? '').trim() || NO_REASON;
    const until = untilOf(duration, String(values.get('until') ?? ''));
    const input = { cover: chosen.cover, reason, until, queued, running };
    onDone(accepted((await request(gql.PauseCallsDocument, { input })).pauseCalls));
  };
  return (
    <FormDialog
      title="Stop calls"
      about={
        <p class="soft">
          From now on the relay admits no such call, and writes none to a client. A caller is told who stopped it, and
          why.
        </p>
      }
      confirm="Stop them"
      keep="Not now"
      busyText="Stopping…"
      failed="They were not stopped."
      stays
      act={act}
      onClose={onClose}
    >
      {stops.length > 1 && (
        <div class="field">
          <span class="label" aria-hidden="true">
            Which calls
          </span>
          <Switch
            legend="Which calls"
            name="stop-what"
            choices={stops.map((stop) => ({ value: stop, text: stop.text }))}
            chosen={chosen}
            onChoose={setChosen}
          />
        </div>
      )}
      <Reach stop={chosen} />
      <TextField
        label="Reason"
        id="stop-reason"
        name="reason"
        maxlength={256}
        autofocus
        hint={`Callers that are refused read it, and the audit log. At most 256 characters; if none, “${NO_REASON}”.`}
      />
      <div class="field">
        <label for="stop-until">How long</label>
        <Select
          id="stop-until"
          value={duration}
          choices={[...DURATIONS, { value: AT_A_TIME, text: 'until a time…' }]}
          onChoose={setDuration}
        />
      </div>
      {duration === AT_A_TIME && (
        <TextField label="Until, in UTC" id="stop-time" name="until" hint="Such as 2026-11-21T14:31." />
      )}
      <div class="field">
        <span class="label" aria-hidden="true">
          Calls that wait
        </span>
        <Switch
          legend="Calls that wait"
          name="stop-queued"
          choices={[
            { value: 'KEEP', text: 'wait on' },
            { value: 'CANCEL', text: 'are cancelled' },
          ]}
          chosen={queued}
          onChoose={setQueued}
        />
      </div>
      <div class="field">
        <span class="label" aria-hidden="true">
          Calls that run
        </span>
        <Switch
          legend="Calls that run"
          name="stop-running"
          choices={[
            { value: 'LEAVE', text: 'run on' },
            { value: 'CANCEL', text: 'are asked to stop' },
          ]}
          chosen={running}
          onChoose={setRunning}
        />
      </div>
    </FormDialog>
  );
}

/** Returns the time at which a pause ends. Null: it ends when somebody resumes. */
function untilOf(duration: string, text: string): string | null {
  if (duration !== AT_A_TIME)
    return duration === '0' ? null : new Date(Date.now() + Number(duration) * 60_000).toISOString();
  const ms = readTime(text.trim(), Date.now());
  if (ms === null || ms <= Date.now())
    throw new RequestError('invalid_argument', 'Write a time to come, with its day.');
  return new Date(ms).toISOString();
}

type ReachState = gql.PauseReachQuery['pauseReach'] | RequestError | null;

/** Shows what a stop would affect now. The person can stop without waiting for this answer. */
function Reach({ stop: { cover, what } }: { readonly stop: StopChoice }) {
  const [reach, setReach] = useState<ReachState>(null);
  const key = JSON.stringify(cover);
  useEffect(() => {
    const stop = new AbortController();
    setReach(null);
    request(gql.PauseReachDocument, { cover }, stop.signal).then(
      ({ pauseReach }) => setReach(pauseReach),
      (cause: unknown) => !isAbort(cause) && setReach(errorOf(cause)),
    );
    return () => stop.abort();
  }, [key]);
  if (reach instanceof RequestError)
    return <ActError title="What it would touch could not be counted." error={reach} />;
  return (
    <p role="status">
      Stops <b>{what}</b>: {reach === null ? 'counting what it would touch…' : reachText(reach)}
    </p>
  );
}

function reachText({ clients, queued, running }: gql.PauseReachQuery['pauseReach']): string {
  const calls =
    queued + running === 0
      ? 'no call waits or runs'
      : `${plural(queued, 'call')} ${queued === 1 ? 'waits' : 'wait'}, ${whole(running)} ${running === 1 ? 'runs' : 'run'}`;
  return `${plural(clients, 'connected client')}; ${calls} now.`;
}

/** Shows what a stop has done. */
function Stopped({ receipt, onClose }: { readonly receipt: Receipt; readonly onClose: () => void }) {
  const { cancelled, asked, partial, silent } = receipt;
  return (
    <Dialog title={partial ? 'Calls are stopped, but not everywhere yet' : 'Calls are stopped'} onClose={onClose}>
      {partial ? (
        <Notice mark="warn" look="error">
          <b>{silent.join(', ')} did not answer.</b> The relay goes on trying; until then calls may still run there.
        </Notice>
      ) : (
        silent.length > 0 && (
          <p>{silent.join(', ')} did not answer. The relay waited until nothing more can be written there.</p>
        )
      )}
      <p>
        {cancelled > 0
          ? `${plural(cancelled, 'call')} that waited ${cancelled === 1 ? 'was' : 'were'} cancelled: nothing of them ran. `
          : ''}
        {asked > 0
          ? `The clients of ${plural(asked, 'call')} that ${asked === 1 ? 'runs' : 'run'} were asked to stop. `
          : ''}
        Until somebody resumes, callers are refused with <code>paused</code>.
      </p>
      <CloseAct onClose={onClose} />
    </Dialog>
  );
}

// The notices about pauses, with buttons that resume.

type PausesProps = {
  /** Whether a pause concerns the page and must be shown. */
  readonly concerns: (pause: Pause) => boolean;
};

/** Reads the pauses. A page shows them with `Pauses`, and reads them again after its own operation. */
export const usePauses = () => useQuery(gql.PausesDocument, { first: READ }, { everyMs: EVERY_MS });

/** Shows a notice for each pause that concerns the page; nothing if there is none. */
export function Pauses({ query, concerns }: PausesProps & { readonly query: ReturnType<typeof usePauses> }) {
  const [isWhole, setWhole] = useState(false);
  const list = query.data?.pauses;
  const rows = list?.nodes.filter(concerns) ?? [];
  const shown = isWhole ? rows : rows.slice(0, SHOWN);
  return (
    <>
      <ErrorNotice query={query} what="what is stopped" />
      <CutNotice completeness={list?.completeness} />
      {shown.map((pause) => (
        <PauseNotice key={pause.pauseId} pause={pause} onDone={query.again} />
      ))}
      {rows.length > shown.length && (
        <p>
          <Button
            look="btn-s"
            text={`Show all ${whole(rows.length)} that are stopped`}
            onClick={() => setWhole(true)}
          />
        </p>
      )}
    </>
  );
}

type NoticeProps = { readonly pause: Pause; readonly onDone: () => void };

function PauseNotice({ pause, onDone }: NoticeProps) {
  const [isAsking, setAsking] = useState(false);
  const { by, reason, since, until } = pause;
  const what = coveredText(pause);
  const mayResume = isAdmin.value || by.kind !== 'ADMIN';
  return (
    <Notice
      mark="pause"
      look="error"
      role="note"
      act={
        mayResume && (
          <ActButton class="btn-s" label={`Resume: ${what}…`} onClick={() => setAsking(true)}>
            Resume…
          </ActButton>
        )
      }
    >
      <b>{what} are stopped</b> by {AUTHOR[by.kind]} {by.name} <Ago at={since} />,{' '}
      {until === null ? 'until somebody resumes' : `until ${untilText(until)}`}: {reason}
      {isAsking && <ResumeDialog pause={pause} what={what} onDone={onDone} onClose={() => setAsking(false)} />}
    </Notice>
  );
}

const AUTHOR: Readonly<Record<gql.PauseAuthorKind, string>> = {
  ADMIN: 'administrator',
  USER: 'user',
  CLIENT: 'the person at',
};

const untilText = (until: string): string => `${clockAt(Date.parse(until))} ${zoneName()}, ${day(until)}`;

type ResumeProps = NoticeProps & { readonly what: string; readonly onClose: () => void };

function ResumeDialog({ pause: { pauseId }, what, onDone, onClose }: ResumeProps) {
  const resume = async (): Promise<void> => {
    const { resumeCalls } = await request(gql.ResumeCallsDocument, { pauseId });
    const { partial, silent } = accepted(resumeCalls);
    onDone();
    if (partial)
      throw new RequestError('store_unavailable', `${silent.join(', ')} did not answer; the relay goes on trying.`);
  };
  return (
    <FormDialog
      title="Resume calls"
      about={
        <p class="soft">
          {what} are admitted again, and those that wait are sent to their clients, unless something else stops them.
        </p>
      }
      confirm="Resume"
      keep="Leave them stopped"
      failed="They were not resumed everywhere."
      danger={false}
      act={resume}
      onClose={onClose}
    >
      {null}
    </FormDialog>
  );
}

/** States which calls a pause covers, as the beginning of a sentence. */
function coveredText({ userId, clientId, callerKind, caller, action, label }: Pause): string {
  const kind = callerKind === null ? 'All calls' : KINDS[callerKind];
  const parts = [
    action === null ? null : `of ${action}`,
    clientId === null ? (userId === null ? null : `to clients of ${userId}`) : `to ${userId} / ${clientId}`,
    caller === null ? null : `by ${caller}`,
    label === null ? null : `of the program ${label}`,
  ];
  return [kind, ...parts].filter((part) => part !== null).join(' ');
}

const KINDS: Readonly<Record<gql.CommandCallerKind, string>> = {
  ADMIN: 'Calls of administrators',
  USER: 'Calls of users',
  GRANT: 'Calls of viewers of sites',
  MCP: 'Calls of agents',
};

// The choices of what to stop, for each page.

const EVERYTHING: StopChoice = { text: 'everything', what: 'all calls of all users', cover: { all: true } };
const ALL_AGENTS: StopChoice = { text: 'all agents', what: 'all calls of agents', cover: { callerKind: 'MCP' } };

/** The choices on the overview of an administrator. */
export const STOPS_OF_ALL = [EVERYTHING, ALL_AGENTS] as const;

/** The choice on the page of agents: the agents of the user, or all agents for an administrator. */
export const stopsOfAgents = (userId: string | null): readonly [StopChoice] => [
  userId === null ? ALL_AGENTS : stopsOfUser(userId)[1],
];

export function stopsOfUser(userId: string): readonly [StopChoice, StopChoice] {
  return [
    { text: 'all calls', what: `all calls to clients of ${userId}`, cover: { userId } },
    { text: 'agents', what: `all calls of agents to clients of ${userId}`, cover: { userId, callerKind: 'MCP' } },
  ];
}

export function stopsOfClient(userId: string, clientId: string): readonly [StopChoice, StopChoice] {
  const cover = { userId, clientId };
  return [
    { text: 'all calls', what: `all calls to ${clientId}`, cover },
    { text: 'agents', what: `all calls of agents to ${clientId}`, cover: { ...cover, callerKind: 'MCP' } },
  ];
}
