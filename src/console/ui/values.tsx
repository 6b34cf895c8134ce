/** Shows single values: states, ids, times, icons, faults, payloads. Also copies texts, and reads and writes times. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ConnectionStatus, Outcome, Stage } from '../../../generated/console.ts';
import { now } from '../api/request.ts';
import { age, bothTimes, bytes, clock, exactClock, isSameDay, nameClass, shortDay, shortId } from './words.ts';

type Look = { readonly shape: ShapeName; readonly word: string };

const OUTCOMES: Readonly<Record<Outcome, Look>> = {
  COMPLETED: { shape: 'completed', word: 'Completed' },
  FAILED: { shape: 'failed', word: 'Failed' },
  CANCELLED: { shape: 'cancelled', word: 'Cancelled' },
  EXPIRED: { shape: 'expired', word: 'Expired' },
  OUTCOME_UNKNOWN: { shape: 'unknown', word: 'Outcome unknown' },
};

/** The order in which outcomes are listed: the normal end first, the ones that need a person last. */
export const OUTCOME_ORDER: readonly Outcome[] = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'OUTCOME_UNKNOWN'];

const STAGES: Readonly<Record<Stage, { readonly bars: number; readonly word: string }>> = {
  ADMITTED: { bars: 1, word: 'Admitted' },
  QUEUED: { bars: 2, word: 'Queued' },
  DISPATCHED: { bars: 3, word: 'Dispatched' },
  ACKNOWLEDGED: { bars: 4, word: 'Acknowledged' },
  TERMINAL: { bars: 4, word: 'Ended' },
};

const CONNECTIONS: Readonly<Record<ConnectionStatus, Look>> = {
  CONNECTED: { shape: 'up', word: 'Connected' },
  STALE: { shape: 'stale', word: 'Stale' },
  DISCONNECTED: { shape: 'down', word: 'Disconnected' },
};

export const outcomeWord = (outcome: Outcome): string => OUTCOMES[outcome].word;
export const outcomeShape = (outcome: Outcome): ShapeName => OUTCOMES[outcome].shape;
export const stageWord = (stage: Stage): string => STAGES[stage].word;

type MarkProps = { readonly shape: ShapeName; readonly children: ComponentChildren };

export function StateMark({ shape, children }: MarkProps) {
  return (
    <span class={`st st-${shape}`}>
      <Shape name={shape} />
      {children}
    </span>
  );
}

export function OutcomeMark({ outcome }: { readonly outcome: Outcome }) {
  return <StateMark shape={OUTCOMES[outcome].shape}>{OUTCOMES[outcome].word}</StateMark>;
}

export function StageMark({ stage }: { readonly stage: Stage }) {
  return (
    <span class="st st-run">
      <span class="pips">
        <Pips filled={STAGES[stage].bars} />
      </span>
      {STAGES[stage].word}
    </span>
  );
}

/** Shows the state of a command: its outcome, or the last stage that is proven. */
export function CommandMark({ stage, outcome }: { readonly stage: Stage; readonly outcome: Outcome | null }) {
  return outcome === null ? <StageMark stage={stage} /> : <OutcomeMark outcome={outcome} />;
}

type ConnectionProps = {
  readonly status: ConnectionStatus;
  /** Whether the status is the last recorded one, because the node of the connection is silent. */
  readonly recorded: boolean;
  /** Whether the client reconnects so often that being connected says little. */
  readonly isUnstable?: boolean;
};

export function ConnectionMark({ status, recorded, isUnstable = false }: ConnectionProps) {
  if (recorded) return <StateMark shape="recorded">As last recorded</StateMark>;
  if (isUnstable && status === 'CONNECTED') return <StateMark shape="stale">Connected, unstable</StateMark>;
  return <StateMark shape={CONNECTIONS[status].shape}>{CONNECTIONS[status].word}</StateMark>;
}

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'class'> & { readonly text: string; readonly look?: string };

/** Shows a button with a text. `look`: its classes besides `btn`. */
export function Button({ text, look = '', ...button }: ButtonProps) {
  return (
    <button class={`btn ${look}`} type="button" {...button}>
      {text}
    </button>
  );
}

type LinkProps = Pick<ButtonProps, 'text' | 'look'> & {
  readonly href: string;
  readonly target?: '_blank';
  readonly rel?: 'noreferrer';
  readonly 'aria-current'?: 'true' | undefined;
};

/** Shows a link that looks like a button. */
export function LinkButton({ text, look = '', ...link }: LinkProps) {
  return (
    <a class={`btn ${look}`} {...link}>
      {text}
    </a>
  );
}

/** The time for which the button shows that it has copied, in milliseconds. */
const COPIED_MS = 1_500;

/** Returns what copies a text, and the label of its button, which says for a while how it went. */
function useCopy(idle: string) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = (text: string): void => {
    copyText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    );
    setTimeout(() => setState('idle'), COPIED_MS);
  };
  const label = { idle, copied: 'Copied', failed: 'The browser refused to copy' }[state];
  return { label, isCopied: state === 'copied', copy };
}

/** Shows a button that copies `text`. `what` names the text for screen readers: "Copy command id". */
function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const { label, isCopied, copy } = useCopy(`Copy ${what}`);
  return (
    <button class="copy" type="button" aria-label={label} title={label} onClick={() => copy(text)}>
      <Icon name={isCopied ? 'done' : 'copy'} />
    </button>
  );
}

/** Shows the button that copies the address of the view: filters, windows of time and pages of lists are in it. */
export function CopyLink() {
  const { label, isCopied, copy } = useCopy('Copy link');
  return (
    <button class="btn btn-quiet copy-link" type="button" title={label} onClick={() => copy(location.href)}>
      <Icon name={isCopied ? 'done' : 'link'} />
      <span>{label}</span>
    </button>
  );
}

type CopyActionProps = { readonly text: () => string; readonly children: string; readonly isSmall?: boolean };

export function CopyAction({ text, children, isSmall = false }: CopyActionProps) {
  const { label, copy } = useCopy(children);
  return <Button look={isSmall ? 'btn-s' : ''} text={label} onClick={() => copy(text())} />;
}

/** Copies a text. Without a secure origin there is no clipboard: the text is selected and copied as a user would. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- the only way to copy without a secure origin
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('The browser refused to copy.');
}

/** Shows a name as a link. A long name takes several lines. */
export function NameLink({ href, text }: { readonly href: string; readonly text: string }) {
  return (
    <a href={href} class={nameClass(text)}>
      {text}
    </a>
  );
}

/** Shows the end of an id, with the whole id as title. */
export function ShortId({ id, href }: { readonly id: string; readonly href?: string | null }) {
  return href ? (
    <a class="id" href={href} title={id}>
      {shortId(id)}
    </a>
  ) : (
    <span class="id" title={id}>
      {shortId(id)}
    </span>
  );
}

export function FullId({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <>
      <span class="id id-full">{id}</span>
      <CopyButton text={id} what={what} />
    </>
  );
}

type CopyLineProps = { readonly text: string; readonly what?: string };

/** Shows lines to copy. `what` names them for screen readers. */
export function CopyLine({ text, what = 'this' }: CopyLineProps) {
  return (
    <div class="copy-line">
      <pre class="pre pre-wrap">{text}</pre>
      <CopyButton text={text} what={what} />
    </div>
  );
}

// Shows times: exact in the chosen zone, or relative to now.

type At = { readonly at: string };

/** Marks a text as a time. The title has the exact one, in UTC and in the zone of the browser. */
function Timed({ at, children }: At & { readonly children: ComponentChildren }) {
  return (
    <time dateTime={at} title={bothTimes(at)}>
      {children}
    </time>
  );
}

/** Shows a time such as `14:31:12` in the chosen zone. The day is shown too if it is not today. */
export function Time({ at, exact = false }: At & { readonly exact?: boolean }) {
  const isToday = isSameDay(new Date(now.value).toISOString(), at);
  return (
    <Timed at={at}>
      {isToday ? '' : `${shortDay(at)}, `}
      {exact ? exactClock(at) : clock(at)}
    </Timed>
  );
}

/** Shows an age such as `9 s ago`, which follows the clock. */
export function Ago({ at }: At) {
  return (
    <Timed at={at}>
      <AgoText at={at} />
    </Timed>
  );
}

/** Shows an age as text. It is a component of its own, so that only this text is rendered each second. */
function AgoText({ at }: At) {
  return <>{age(now.value - Date.parse(at))} ago</>;
}

/** Shows a time and its age: `14:31:12, 9 s ago`. */
export function When({ at }: At) {
  return (
    <Timed at={at}>
      {isSameDay(new Date(now.value).toISOString(), at) ? '' : `${shortDay(at)}, `}
      {clock(at)}
      <span class="quiet">
        {', '}
        <AgoText at={at} />
      </span>
    </Timed>
  );
}

/** Shows a future time as `in 2 m 41 s`, and a past one as `41 s ago`. */
export function Until({ at }: At) {
  const left = Date.parse(at) - now.value;
  return <Timed at={at}>{left > 0 ? `in ${age(left)}` : `${age(-left)} ago`}</Timed>;
}

/** Shows how long something has lasted since `at`, such as `1.1 s`. The caller adds words such as `so far`. */
export function Since({ at }: At) {
  return <>{age(now.value - Date.parse(at))}</>;
}

// Reads times as people write them: in UTC, with or without a day.

const DAY_MS = 86_400_000;

/**
 * Reads `2026-11-21T14:31`, `2026-11-21` or `14:31:12` as UTC, unless the text names another zone. A time without a day
 * is the latest one that is not after `now`. Returns epoch milliseconds; null if the text is not a time.
 */
export function readTime(text: string, now: number): number | null {
  if (/^\d\d:\d\d(:\d\d)?$/.test(text)) {
    const ms = Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${text}Z`);
    return Number.isNaN(ms) ? null : ms - (ms > now ? DAY_MS : 0);
  }
  const hasZone = /[zZ]|[+-]\d\d:?\d\d$/.test(text.slice(10));
  const ms = Date.parse(hasZone ? text : `${text}${text.includes('T') ? '' : 'T00:00'}Z`);
  return Number.isNaN(ms) ? null : ms;
}

/** Returns the time of a filter in the form that the relay reads; null without one, and for a text that is no time. */
export function timeOfFilter(text: string | undefined): string | null {
  const ms = text === undefined ? null : readTime(text, Date.now());
  return ms === null ? null : new Date(ms).toISOString();
}

/** Writes a time to the second, in a form that `readTime` reads: `2026-11-21T14:31:12Z`. */
export const writeTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

// Draws the icons of the console: lines on a grid of 16.

const PATHS = {
  overview: 'M2.5 13.5v-5m3.7 5v-11m3.6 11v-7m3.7 7v-4',
  calls: 'M2.5 5.5h10m-3-3 3 3-3 3M13.5 11h-10m3-2.5L3.5 11l3 2.5',
  waits: 'M8 4.5V8l2.3 1.4M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z',
  clients: 'M2 3.5h12v7.5H2zM6 13.5h4',
  actions: 'M9 1.8 3.5 9h4L7 14.2 12.5 7h-4z',
  history: 'M2.5 4h11m-11 4h11m-11 4h7',
  places: 'M2 3h12v10H2zM2 6h12M4.2 4.5h.01',
  users: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8Zm-5 5.5c.5-2.4 2.4-3.7 5-3.7s4.5 1.3 5 3.7',
  sites:
    'M8 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4ZM5.3 10.7a3.8 3.8 0 0 1 0-5.4m5.4 0a3.8 3.8 0 0 1 0 5.4M3.2 12.8a6.8 6.8 0 0 1 0-9.6m9.6 0a6.8 6.8 0 0 1 0 9.6',
  nodes: 'M2.5 2.5h11v4.5h-11zm0 6.5h11v4.5h-11zM5 4.75h.01M5 11.25h.01',
  capacity: 'M2.5 12a6 6 0 1 1 11 0M8 9.5l2.5-3.5',
  dedup: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3M7.8 9.5h3.4',
  audit: 'M3.5 2h6l3 3v9h-9zM9.5 2v3h3M5.5 8.5h5m-5 2.5h3',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2 3.2 3.2',
  close: 'm4 4 8 8m0-8-8 8',
  plus: 'M8 3v10M3 8h10',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: 'm4 6.5 4 4 4-4',
  up: 'm4 9.5 4-4 4 4',
  menu: 'M2.5 4.5h11m-11 3.5h11m-11 3.5h11',
  sun: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm0-9v1.2m0 10.6v1.2M1.5 8h1.2m10.6 0h1.2M3.4 3.4l.9.9m7.4 7.4.9.9m0-9.2-.9.9m-7.4 7.4-.9.9',
  moon: 'M13.3 9.5A5.7 5.7 0 0 1 6.5 2.7a5.7 5.7 0 1 0 6.8 6.8Z',
  system: 'M2 3h12v8H2zM5.5 13.5h5',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-6.5V11m0-5.6h.01',
  cut: 'M2.5 4h11m-11 4h11M2.5 12h2.2m2.2 0h2.2m2.2 0h2.2',
  warn: 'M8 2.3 14.2 13H1.8zM8 6.5v3m0 1.7h.01',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z',
  pause: 'M5.5 3.5v9m5-9v9',
  play: 'M5 3.2v9.6L12.5 8z',
  key: 'M10 9.5A3.5 3.5 0 1 0 6.6 7L2 11.6V14h2.4v-1.7h1.7v-1.7h1.5',
  done: 'm3 8.5 3.2 3.2L13 4.5',
  link: 'M6.8 9.2l2.4-2.4M7.2 4.8l1.6-1.6a2.8 2.8 0 0 1 4 4l-1.6 1.6m-2.4 2.4-1.6 1.6a2.8 2.8 0 0 1-4-4l1.6-1.6',
  exit: 'M6 2.5H2.5v11H6M10 5l3 3-3 3m3-3H6',
} as const;

export type IconName = keyof typeof PATHS;

/** Draws an icon as a decoration. A word beside it, or the label of its button, says the same. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="i" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** Shows a sentence of the relay or of a client, with code where it has backquotes. */
export function Prose({ text }: { readonly text: string }) {
  const parts = text.split(/`([^`\n]+)`/);
  return <>{parts.map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</>;
}

/** Says what is wrong with what a person typed. */
export function Fault({ text, isAlert = true }: { readonly text: string; readonly isAlert?: boolean }) {
  return (
    <p class="err" role={isAlert ? 'alert' : undefined}>
      <Icon name="warn" />
      {text}
    </p>
  );
}

/** The number of characters of a long text that are shown until the user asks for all of it. */
const SHOWN_CHARS = 16 * 1024;

export function Payload({ text, what }: { readonly text: string; readonly what: string }) {
  const [whole, setWhole] = useState(false);
  const [lines, setLines] = useState(false);
  const laidOut = lines ? layOut(text) : text;
  const cut = !whole && laidOut.length > SHOWN_CHARS;
  return (
    <div class="payload">
      <div class="payload-acts">
        <span class="quiet">{bytes(new Blob([text]).size)}</span>
        <CopyButton text={text} what={what} />
        <Button
          look="btn-s btn-quiet"
          text={lines ? 'As received' : 'Indented'}
          aria-pressed={lines}
          onClick={() => setLines(!lines)}
        />
      </div>
      <pre class="pre pre-wrap payload-text" tabIndex={0} aria-label={what}>
        {cut ? laidOut.slice(0, SHOWN_CHARS) : laidOut}
      </pre>
      {cut && <Button look="btn-s" text="Show all of it" onClick={() => setWhole(true)} />}
    </div>
  );
}

/** Returns the same JSON tokens with line breaks and spaces between them. It changes no number and no text. */
function layOut(text: string): string {
  let depth = 0;
  let inText = false;
  let out = '';
  const line = (): string => `\n${'  '.repeat(depth)}`;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (inText) {
      out += char;
      if (char === '\\') out += text.charAt(++at);
      else if (char === '"') inText = false;
    } else if (char === '"') {
      inText = true;
      out += char;
    } else if (char === '{' || char === '[') {
      const empty = /^\s*[}\]]/.test(text.slice(at + 1, at + 64));
      depth += 1;
      out += empty ? char : char + line();
    } else if (char === '}' || char === ']') {
      depth -= 1;
      out += /[{[]$/.test(out) ? char : line() + char;
    } else if (char === ',') out += char + line();
    else if (char === ':') out += ': ';
    else if (!/\s/.test(char)) out += char;
  }
  return out;
}

// Draws the shapes of states, on a grid of 14. Colour is never the only sign of a state.

const SHAPES = {
  completed: (
    <>
      <circle class="shape-fill" cx="7" cy="7" r="6" />
      <path class="shape-cut" d="m4.4 7.2 1.9 1.9 3.4-3.9" />
    </>
  ),
  failed: (
    <>
      <rect class="shape-fill" x="1.25" y="1.25" width="11.5" height="11.5" rx="1.5" />
      <path class="shape-cut" d="m4.8 4.8 4.4 4.4m0-4.4-4.4 4.4" />
    </>
  ),
  cancelled: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="5.25" />
      <path class="shape-line" d="M4.5 7h5" />
    </>
  ),
  expired: (
    <>
      <path class="shape-line" stroke-linejoin="round" d="M2.5 1.5h9L7 7l4.5 5.5h-9L7 7z" />
      <path class="shape-fill" d="M4.6 12h4.8L7 9.2z" />
    </>
  ),
  unknown: (
    <>
      <path class="shape-line" stroke-linejoin="round" d="M7 1 13 7l-6 6-6-6z" />
      <path class="shape-fill" d="M7 1 1 7l6 6z" />
    </>
  ),
  up: <circle class="shape-fill" cx="7" cy="7" r="4" />,
  stale: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="4" />
      <path class="shape-fill" d="M7 3a4 4 0 0 0 0 8z" />
    </>
  ),
  down: <circle class="shape-line" cx="7" cy="7" r="4" />,
  recorded: <circle class="shape-dash" cx="7" cy="7" r="4.5" />,
  drain: <path class="shape-line" d="M7 2v8m-3.5-3.2L7 10.3l3.5-3.5" stroke-linecap="round" />,
  pass: <path class="shape-line" stroke-linecap="round" stroke-linejoin="round" d="m2.5 7.4 3 3 6-6.8" />,
  skip: <path class="shape-line" stroke-linecap="round" d="M3.5 7h7" />,
  proven: <circle class="shape-fill" cx="7" cy="7" r="4.5" />,
  open: <circle class="shape-dash" cx="7" cy="7" r="5" />,
  late: (
    <>
      <circle class="shape-line" cx="7" cy="7" r="4.5" />
      <path class="shape-line" stroke-linecap="round" d="M7 4.6V7l1.6 1.2" />
    </>
  ),
  note: <circle class="shape-line" cx="7" cy="7" r="2.5" />,
} satisfies Record<string, JSX.Element>;

export type ShapeName = keyof typeof SHAPES;

export function Shape({ name }: { readonly name: ShapeName }) {
  return (
    <svg viewBox="0 0 14 14" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}

/** Draws four bars, of which `filled` (0 to 4) are filled: those up to the last proven stage. */
export function Pips({ filled, wide = false }: { readonly filled: number; readonly wide?: boolean }) {
  const bars = [0, 1, 2, 3].map((bar) =>
    bar < filled ? (
      <rect key={bar} class="pip-on" x={bar * 4.75} y="0" width="3" height="12" rx="0.75" />
    ) : (
      <rect key={bar} class="pip-off" x={bar * 4.75 + 0.5} y="0.5" width="2" height="11" rx="0.5" />
    ),
  );
  return (
    <svg viewBox="0 0 18 12" aria-hidden="true" class={wide ? 'wide' : undefined}>
      {bars}
    </svg>
  );
}

/** Draws the mark of Callboard: three solid bars, and a dashed one for what is not proven. */
export function Mark() {
  return (
    <svg viewBox="0 0 20 16" aria-hidden="true">
      {[0, 5.25, 10.5].map((x) => (
        <rect key={x} x={x} y="1" width="3.5" height="14" rx="1" fill="currentColor" />
      ))}
      <rect
        x="16.25"
        y="1.5"
        width="3"
        height="13"
        rx="0.75"
        fill="none"
        stroke="currentColor"
        stroke-dasharray="2.2 1.4"
      />
    </svg>
  );
}
