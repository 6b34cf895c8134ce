/**
 * Shows whether the relay would admit the call: the answer of each check of the relay, and what the client will decide.
 * Also shows the fields for the call's budgets.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import {
  PreflightDocument,
  type PreflightLayerName,
  type PreflightQuery,
  type PreflightVerdict,
  type WaitStage,
} from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { ErrorNotice, Section } from '../ui/page.tsx';
import { Shape, type ShapeName, StateMark } from '../ui/values.tsx';
import { capitalWord, clock, zoneName } from '../ui/words.ts';
import type { ParamsFault } from './checker.ts';
import type { CallInput } from './sent.tsx';

type Layer = PreflightQuery['preflightInvocation']['layers'][number];

const LOOKS: Readonly<
  Record<PreflightVerdict, { readonly shape: ShapeName; readonly name: string; readonly word: string }>
> = {
  PASS: { shape: 'pass', name: 'pass', word: 'passes' },
  REFUSE: { shape: 'failed', name: 'refuse', word: 'would refuse' },
  UNKNOWN: { shape: 'open', name: 'unknown', word: 'not known' },
  SKIPPED: { shape: 'skip', name: 'skip', word: 'skipped' },
};

/** The time for which the input must stay unchanged before the relay is asked, in milliseconds. */
const REST_MS = 400;

type PreflightProps = {
  readonly input: CallInput;
  /** The params of the call as JSON text. */
  readonly params: string;
  readonly faults: readonly ParamsFault[];
  /** Whether the params were checked here against the schema of the action, and fit it. */
  readonly isFit: boolean;
  /** Further buttons. */
  readonly children: ComponentChildren;
};

export function Preflight({ input, params, faults, isFit, children }: PreflightProps) {
  const broken = faults.some(({ syntax }) => syntax);
  const rested = useRested({ input, params }, broken);
  const query = useQuery(
    PreflightDocument,
    { input: { ...rested.input, params: parse(rested.params) } },
    { skip: broken },
  );
  const found = query.data?.preflightInvocation;
  return (
    <Section
      title="Would it be admitted?"
      about={found && `as of ${clock(found.asOf)} ${zoneName()}; reserves nothing`}
    >
      <ErrorNotice query={query} what="whether it would be admitted" />
      <div aria-live="polite">
        {found && <Verdict found={found} />}
        {faults.length > 0 && <StateMark shape="failed">The client would refuse its arguments.</StateMark>}
      </div>
      {found && <Checks layers={found.layers.map((layer) => withChecked(layer, faults, isFit))} />}
      <p class="side-acts">
        <button class="btn btn-s" type="button" onClick={query.again}>
          Ask again
        </button>
        {children}
      </p>
    </Section>
  );
}

/** Shows one line that counts the checks, and opens to show each. */
function Checks({ layers }: { readonly layers: readonly Layer[] }) {
  const ofRelay = layers.filter(({ askedOf }) => askedOf === 'RELAY');
  const ofClient = layers.filter(({ askedOf }) => askedOf === 'CLIENT');
  return (
    <details class="checks">
      <summary>
        The relay: {countsOf(ofRelay)}. The client: {countsOf(ofClient)}.
      </summary>
      <h3 class="layers-head">Asked of the relay, in this order</h3>
      <Layers layers={ofRelay} />
      <h3 class="layers-head">Asked of the client, when it gets there</h3>
      <Layers layers={ofClient} />
    </details>
  );
}

const COUNTED: readonly (readonly [PreflightVerdict, string])[] = [
  ['REFUSE', 'would refuse'],
  ['PASS', 'pass'],
  ['UNKNOWN', 'not known'],
  ['SKIPPED', 'skipped'],
];

/** Counts the checks by their answer: `7 pass, 1 skipped`. */
function countsOf(layers: readonly Layer[]): string {
  return COUNTED.flatMap(([verdict, word]) => {
    const count = layers.filter((layer) => layer.verdict === verdict).length;
    return count === 0 ? [] : `${count} ${count === 1 && verdict === 'PASS' ? 'passes' : word}`;
  }).join(', ');
}

function Verdict({ found }: { readonly found: PreflightQuery['preflightInvocation'] }) {
  const { wouldAdmit, firstRefusal } = found;
  if (wouldAdmit !== 'PASS' && firstRefusal)
    return (
      <p>
        <StateMark shape="failed">The relay would refuse it.</StateMark> {firstRefusal.message}{' '}
        {firstRefusal.code && <code>{firstRefusal.code}</code>}
      </p>
    );
  return (
    <p>
      {wouldAdmit === 'PASS' ? (
        <StateMark shape="pass">The relay would admit it.</StateMark>
      ) : (
        <StateMark shape="open">Whether the relay would admit it is not known.</StateMark>
      )}
    </p>
  );
}

function Layers({ layers }: { readonly layers: readonly Layer[] }) {
  return (
    <ul class="layers">
      {layers.map((layer) => {
        const { shape, name, word } = LOOKS[layer.verdict];
        return (
          <li key={layer.layer} class={`v-${name}`}>
            <Shape name={shape} />
            <b>
              {nameOf(layer.layer)}
              <span class="sr">: {word}</span>
            </b>
            <p>{layer.message}</p>
          </li>
        );
      })}
    </ul>
  );
}

/**
 * Adds what the console found by its own check of the arguments to the layer of the client's check. Only the client
 * decides whether it refuses them.
 */
function withChecked(layer: Layer, faults: readonly ParamsFault[], isFit: boolean): Layer {
  if (layer.layer !== 'CLIENT_ARGUMENTS') return layer;
  if (isFit) return { ...layer, verdict: 'PASS', message: 'They fit its schema, as checked here.' };
  if (faults.length === 0) return layer;
  const message = faults.map(({ at, text }) => (at === '' ? text : `${at}: ${text}`)).join(' ');
  return { ...layer, verdict: 'REFUSE', message: `${message} Checked here against its schema.` };
}

function nameOf(layer: PreflightLayerName): string {
  return capitalWord(layer.replace(/^CLIENT_/, ''));
}

/** Returns the input as it was when it last stayed unchanged for `restMs`. */
export function useRested<Value>(value: Value, skip: boolean, restMs = REST_MS): Value {
  const [rested, setRested] = useState(value);
  const key = JSON.stringify(value);
  useEffect(() => {
    if (skip) return undefined;
    const timer = setTimeout(() => setRested(value), restMs);
    return () => clearTimeout(timer);
  }, [key, skip]);
  return rested;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // The query is skipped in this case; see `skip`.
  }
}

// Shows the fields for how long a call may wait, and for which stage of the command.

export type BudgetValues = {
  readonly respondWithinMs: number;
  readonly connectWithinMs: number;
  readonly waitFor: WaitStage;
};

export const DEFAULT_BUDGETS: BudgetValues = { respondWithinMs: 30_000, connectWithinMs: 0, waitFor: 'COMPLETED' };

const WAITS: readonly { readonly value: WaitStage; readonly text: string }[] = [
  { value: 'COMPLETED', text: 'the end' },
  { value: 'ACKNOWLEDGED', text: 'receipt by the client' },
  { value: 'ADMITTED', text: 'admission only' },
];

type BudgetsProps = { readonly values: BudgetValues; readonly onChange: (values: BudgetValues) => void };

export function Budgets({ values, onChange }: BudgetsProps) {
  const { respondWithinMs, connectWithinMs, waitFor } = values;
  return (
    <details class="budgets">
      <summary>
        Waits {respondWithinMs / 1000} s for {WAITS.find(({ value }) => value === waitFor)?.text}, and{' '}
        {connectWithinMs / 1000} s for a client that is away
      </summary>
      <div class="pair">
        <SecondsField
          id="respond-within"
          label="Time to answer, seconds"
          ms={respondWithinMs}
          onChange={(ms) => onChange({ ...values, respondWithinMs: ms })}
        />
        <SecondsField
          id="connect-within"
          label="Time to connect, seconds"
          ms={connectWithinMs}
          onChange={(ms) => onChange({ ...values, connectWithinMs: ms })}
        />
        <div class="field">
          <label for="wait-for">Wait for</label>
          <select
            class="in"
            id="wait-for"
            value={waitFor}
            onChange={(event) => {
              const chosen = WAITS.find(({ value }) => value === event.currentTarget.value);
              if (chosen) onChange({ ...values, waitFor: chosen.value });
            }}
          >
            {WAITS.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </div>
      </div>
    </details>
  );
}

type SecondsProps = {
  readonly id: string;
  readonly label: string;
  readonly ms: number;
  readonly onChange: (ms: number) => void;
};

function SecondsField({ id, label, ms, onChange }: SecondsProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        class="in"
        id={id}
        type="number"
        min="0"
        step="any"
        value={ms / 1000}
        onInput={({ currentTarget }) => onChange(Math.round(Math.max(0, currentTarget.valueAsNumber || 0) * 1000))}
      />
    </div>
  );
}
